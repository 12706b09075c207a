"""Precision, recall and F1 of named entities."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .counts import Counts, counts_table
from .labels import LabelScores, label_scores

# The tag of words outside entities.
OUTSIDE = "O"
_TAG = re.compile(r"(?P<place>[BIES])-(?P<kind>.+)", re.DOTALL)


@dataclass(frozen=True)
class EntityScores(Counts):
    """Counts of all entities, and of each type, sorted.

    A correct entity has the right words and type.
    """

    by_type: dict[str, Counts] = field(default_factory=dict)

    def table(self) -> str:
        """Returns a table of the scores of each type and of all entities."""
        return "\n".join(counts_table("entities", {**self.by_type, "all": self}))


def are_entity_tags(tags: Iterable[str]) -> bool:
    """Returns True for entity tags: "O", and "B-", "I-", "E-" or "S-" with a type.

    >>> are_entity_tags(["O", "B-place", "I-place"]), are_entity_tags(["NOUN", "VERB"])
    (True, False)
    """
    others = [tag for tag in tags if tag != OUTSIDE]
    return bool(others) and all(_TAG.fullmatch(tag) for tag in others)


def entities(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Returns the entities of a sentence: first word, the word after the last, and type.

    `tags` has a tag for each word, in IOB2 (B, I, O) or BIOES format. An entity begins at "B-" or
    "S-", after "E-" or "S-", after "O" or at the beginning of the sentence, and where the type
    changes. Therefore, an "I-" or "E-" without a preceding tag of its type begins an entity, as in
    conlleval. Raises ValueError if a tag has another format.

    Example:

    >>> sorted(entities(["B-person", "I-person", "O", "I-place", "B-place"]))
    [(0, 2, 'person'), (3, 4, 'place'), (4, 5, 'place')]
    """
    spans: list[tuple[int, int, str]] = []
    # The type of an entity that the next word may continue.
    is_open = None
    for word, tag in enumerate(tags):
        if tag == "O":
            is_open = None
            continue
        parts = _TAG.fullmatch(tag)
        if parts is None:
            raise ValueError(
                f"{tag!r} is not an entity tag: expected 'O', or 'B-', 'I-', 'E-' or 'S-' and "
                "a type"
            )
        place, kind = parts["place"], parts["kind"]
        first = word
        if place in "IE" and kind == is_open:
            first, _, _ = spans.pop()
        spans.append((first, word + 1, kind))
        is_open = kind if place in "BI" else None
    return set(spans)


def entity_scores(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> EntityScores:
    """Scores predicted entities over a corpus, as conlleval does.

    An entity is correct if its first word, last word and type are correct. `references` and
    `predictions` have one list of tags per sentence, as for `entities`. Raises TypeError if a
    sentence is a string, and ValueError if the numbers of sentences or words differ.

    Example:

    >>> found = entity_scores(
    ...     [["B-person", "I-person", "O", "B-place"]], [["B-person", "O", "O", "B-place"]])
    >>> print(found.table())
    entities  precision  recall      F1  support
    person        0.000   0.000   0.000        1
    place         1.000   1.000   1.000        1
    all           0.500   0.500   0.500        2

    Reference:
        Tjong Kim Sang and Buchholz, "Introduction to the CoNLL-2000 Shared
        Task: Chunking", 2000, section 3, https://aclanthology.org/W00-0726/,
        and the script that came with it, conlleval
    """
    _check_sentences(references, predictions)
    correct: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    for true_tags, predicted_tags in zip(references, predictions, strict=True):
        truth, prediction = entities(true_tags), entities(predicted_tags)
        correct.update(kind for *_, kind in truth & prediction)
        predicted.update(kind for *_, kind in prediction)
        expected.update(kind for *_, kind in truth)
    by_type = {
        kind: Counts(correct[kind], predicted[kind], expected[kind])
        for kind in sorted(predicted.keys() | expected.keys())
    }
    return EntityScores(correct.total(), predicted.total(), expected.total(), by_type)


@dataclass(frozen=True)
class TagScores:
    """Scores of single words, and of entities if the tags are entity tags."""

    words: LabelScores
    entities: EntityScores | None

    def table(self) -> str:
        """Returns the tables of all scores, entities first."""
        tables = [self.words.table()]
        if self.entities is not None:
            tables.insert(0, self.entities.table())
        return "\n\n".join(tables)


def tag_scores(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> TagScores:
    """Scores predicted tags by word and, for entity tags, also by entity; see `entity_scores`.

    Example:

    >>> scores = tag_scores([["O", "B-place"], ["O"]], [["O", "B-place"], ["B-place"]])
    >>> round(scores.words.accuracy, 3), scores.entities.precision
    (0.667, 0.5)
    >>> tag_scores([["NOUN", "VERB"]], [["NOUN", "NOUN"]]).entities is None
    True
    """
    _check_sentences(references, predictions)
    truth, predicted = (
        [tag for sentence in sentences for tag in sentence]
        for sentences in (references, predictions)
    )
    is_scored = are_entity_tags({*truth, *predicted})
    scores = entity_scores(references, predictions) if is_scored else None
    return TagScores(label_scores(truth, predicted), scores)


def _check_sentences(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> None:
    """Raises `TypeError` or `ValueError` unless every word has a tag on both sides."""
    if len(references) != len(predictions):
        raise ValueError(
            f"received references of {len(references)} sentences and predictions of "
            f"{len(predictions)}"
        )
    for number, (truth, predicted) in enumerate(zip(references, predictions, strict=True), 1):
        if isinstance(truth, str) or isinstance(predicted, str):
            raise TypeError(f"sentence {number} must be a list of tags, not one string")
        if len(truth) != len(predicted):
            raise ValueError(
                f"sentence {number} has {len(truth)} tags in the references and "
                f"{len(predicted)} in the predictions"
            )
