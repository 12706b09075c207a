"""F1 score of entities."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.metrics.summed import SummedMetric, add, ratio
from keras_seq.metrics.tokens import as_ids, predicted_ids, real_tokens, row_weights, rows_of
from keras_seq.scoring import entities


@keras.saving.register_keras_serializable(package="keras_seq")
class EntityF1(SummedMetric):
    """F1 score of entities, equal to that of conlleval and `keras_seq.scoring.entity_scores`.

        F1 = 2 * right / (predicted + true)

    An entity is right if its first word, last word and type are right. All counts are summed over
    batches and types. The metric runs in compiled code. A word counts if its true tag is not
    `pad_id` and the Keras mask of the logits, if any, is True. Words that do not count are skipped
    as if their neighbors were adjacent.

    Shapes: B batch, S steps, N tags.

    Args:
        tags: List of the N tag names: "O", and "B-", "I-", "E-" or "S-" followed by a type.
        pad_id: Tag id of padding and of subwords inside a word, or None to rely on the mask alone.
            Defaults to -1.
        name, dtype: Name of the metric, and dtype of the result.

    Call arguments:
        y_true: Integer tag ids `(B, S)`, from 0.
        y_pred: Float logits `(B, S, N)`, or integer tag ids `(B, S)`.
        sample_weight: Optional weights `(B,)`.

    Returns:
        Float scalar in [0, 1]; 0 if neither side has an entity.

    Raises:
        ValueError: If a tag name has another form, or a shape does not fit.

    Example:

    >>> metric = EntityF1(["O", "B-person", "I-person", "B-place"])
    >>> true = keras.ops.array([[1, 2, 0, 3, -1]])
    >>> float(metric(true, keras.ops.array([[1, 0, 0, 3, 0]])))
    0.5

    Reference:
        Tjong Kim Sang and Buchholz, "Introduction to the CoNLL-2000 Shared Task: Chunking",
        2000, section 3, https://aclanthology.org/W00-0726/
    """

    default_name = "entity_f1"
    sums = ("right", "predicted", "true")

    def __init__(
        self, tags: list[str], pad_id: int | None = -1, name: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(pad_id, name, dtype)
        self.tags = list(tags)
        kinds: dict[str, int] = {}
        # The last row stands for padding, which is outside of all entities.
        table = [_tag_properties(tag, kinds) for tag in self.tags] + [(0, False, False)]
        self._kinds, self._opening, self._continuing = map(list, zip(*table, strict=True))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true = as_ids("y_true", y_true)
        y_pred, ids = predicted_ids(y_true, y_pred)
        real = real_tokens(y_true, y_pred, self.pad_id)
        weights = row_weights(real, sample_weight)
        fill = len(self.tags)
        true, predicted = (
            self._flags(rows_of(tags, real, None, False, fill)[0]) for tags in (y_true, ids)
        )
        add(self.right, ops.sum(_right(true, predicted) * weights))
        for variable, flags in ((self.predicted, predicted), (self.true, true)):
            count = ops.sum(ops.cast(flags["starts"], "float32"), axis=1)
            add(variable, ops.sum(count * weights))

    def _flags(self, tags: Any) -> dict[str, Any]:
        """Returns the entity type of each word (0: none), and bools at first and last words."""
        kinds = ops.take(ops.convert_to_tensor(self._kinds, "int32"), tags)
        opening = ops.take(ops.convert_to_tensor(self._opening, "bool"), tags)
        continuing = ops.take(ops.convert_to_tensor(self._continuing, "bool"), tags)
        inside = kinds > 0
        # The type of the entity that a word may continue.
        open_kinds = ops.pad(ops.where(opening, kinds, 0)[:, :-1], [[0, 0], [1, 0]])
        continued = ops.logical_and(continuing, ops.equal(kinds, open_kinds))
        starts = ops.logical_and(inside, ops.logical_not(continued))
        continues = ops.cast(ops.logical_and(inside, continued), "int32")
        continued_next = ops.pad(continues[:, 1:], [[0, 0], [0, 1]]) > 0
        ends = ops.logical_and(inside, ops.logical_not(continued_next))
        return {"kinds": kinds, "starts": starts, "ends": ends}

    def result(self) -> Any:
        return ops.cast(ratio(2.0 * self.right, self.predicted + self.true), self.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "tags": self.tags}


def _tag_properties(tag: str, kinds: dict[str, int]) -> tuple[int, bool, bool]:
    """Returns (type number, may precede a word of its entity, may follow a word of its entity)."""
    spans = entities([tag])
    if not spans:
        return 0, False, False
    ((_, _, kind),) = spans
    return kinds.setdefault(kind, len(kinds) + 1), tag[0] in "BI", tag[0] in "IE"


def _right(true: dict[str, Any], predicted: dict[str, Any]) -> Any:
    """Returns the number of true entities of each row that were predicted, float32 `(B,)`.

    An entity was predicted if all its words have equal entries of `_flags` in both arguments.
    """
    inside = true["kinds"] > 0
    same = ops.equal(true["kinds"], predicted["kinds"])
    for flag in ("starts", "ends"):
        same = ops.logical_and(same, ops.equal(true[flag], predicted[flag]))
    wrong = ops.cast(ops.logical_and(inside, ops.logical_not(same)), "int32")
    starts = ops.reshape(ops.cast(true["starts"], "int32"), (-1,))
    # Each word's true entity, numbered over all rows.
    numbers = ops.cumsum(starts)
    count = backend.shape(numbers)[0] + 1
    errors = ops.segment_sum(ops.reshape(wrong, (-1,)), numbers, num_segments=count)
    right = ops.logical_and(starts > 0, ops.equal(ops.take(errors, numbers), 0))
    right = ops.reshape(ops.cast(right, "float32"), backend.shape(inside))
    return ops.sum(right, axis=1)
