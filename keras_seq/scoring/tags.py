"""Scores of a tagger by word and by entity."""

from collections.abc import Sequence
from dataclasses import dataclass

from .entities import EntityScores, are_entity_tags, check_sentences, entity_scores
from .labels import LabelScores, label_scores


@dataclass(frozen=True)
class TagScores:
    """Agreement of predicted and true tags.

    Attributes:
        words: The scores of single words.
        entities: The scores of entities; None if the tags are not entity tags.
    """

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
    """Scores predicted tags by word and, for entity tags, by entity.

    Args:
        references: The true tags of each sentence, one for each word.
        predictions: The predicted tags, in the same shape.

    Raises:
        TypeError, ValueError: As `label_scores` and `entity_scores`.

    Example:

    >>> scores = tag_scores([["O", "B-place"], ["O"]], [["O", "B-place"], ["B-place"]])
    >>> round(scores.words.accuracy, 3), scores.entities.precision
    (0.667, 0.5)
    >>> tag_scores([["NOUN", "VERB"]], [["NOUN", "NOUN"]]).entities is None
    True
    """
    check_sentences(references, predictions)
    truth, predicted = (
        [tag for sentence in sentences for tag in sentence]
        for sentences in (references, predictions)
    )
    entities = None
    if are_entity_tags({*truth, *predicted}):
        entities = entity_scores(references, predictions)
    return TagScores(label_scores(truth, predicted), entities)
