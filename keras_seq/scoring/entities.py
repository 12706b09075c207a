"""Precision, recall and F1 of named entities."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .counts import Counts, counts_table

_TAG = re.compile(r"(?P<place>[BIES])-(?P<kind>.+)", re.DOTALL)


@dataclass(frozen=True)
class EntityScores(Counts):
    """Counts of entities. A correct entity has the right words and type.

    Attributes:
        correct: Number of correct predicted entities.
        found: Number of predicted entities.
        expected: Number of true entities.
        by_type: The counts of each type, sorted by type.
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
    others = [tag for tag in tags if tag != "O"]
    return bool(others) and all(_TAG.fullmatch(tag) for tag in others)


def entities(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Returns the entities of a sentence: first word, the word after the last, and type.

    An entity begins at "B-" or "S-", after "E-" or "S-", after "O" or at the beginning of the
    sentence, and where the type changes. Therefore, an "I-" or "E-" without a preceding tag of its
    type begins an entity, as in conlleval.

    Args:
        tags: A tag for each word, in IOB2 (B, I, O) or BIOES format.

    Raises:
        ValueError: If a tag has another format.

    Example:

    >>> sorted(entities(["B-person", "I-person", "O", "I-place", "B-place"]))
    [(0, 2, 'person'), (3, 4, 'place'), (4, 5, 'place')]
    """
    found: list[tuple[int, int, str]] = []
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
            first, _, _ = found.pop()
        found.append((first, word + 1, kind))
        is_open = kind if place in "BI" else None
    return set(found)


def entity_scores(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> EntityScores:
    """Scores predicted entities over a corpus, as conlleval does.

    An entity is correct if its first word, last word and type are correct.

    Args:
        references: The true tags of each sentence, one for each word, in IOB2 (B, I, O) or BIOES
            format; both may occur.
        predictions: The predicted tags, in the same shape.

    Returns:
        The scores of all entities and of each type.

    Raises:
        TypeError: If a sentence is a string.
        ValueError: If the numbers of sentences or words differ, or a tag has another format.

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
    check_sentences(references, predictions)
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    for true_tags, predicted_tags in zip(references, predictions, strict=True):
        truth, predicted = entities(true_tags), entities(predicted_tags)
        correct.update(kind for *_, kind in truth & predicted)
        found.update(kind for *_, kind in predicted)
        expected.update(kind for *_, kind in truth)
    by_type = {
        kind: Counts(correct[kind], found[kind], expected[kind])
        for kind in sorted(found.keys() | expected.keys())
    }
    return EntityScores(correct.total(), found.total(), expected.total(), by_type)


def check_sentences(
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
