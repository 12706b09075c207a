"""F1 of entities."""

import keras
from keras import ops

from keras_seq.metrics.summed import SummedMetric, add, ratio
from keras_seq.metrics.tokens import (
    as_ids,
    predicted_ids,
    real_tokens,
    row_weights,
    rows_of,
)
from keras_seq.scoring import entities

# Shape letters: B batch, S steps, N tags.


@keras.saving.register_keras_serializable(package="keras_seq")
class EntityF1(SummedMetric):
    """F1 of entities, as conlleval and `keras_seq.scoring.entity_scores` count them.

        F1 = 2 * right / (predicted + true)

    An entity is right if its first word, its last and its type are. Counts are sums over all
    batches and types, and the metric runs in compiled code. A word counts if its true tag is
    not `pad_id` and the mask of the logits, if there is one, does not exclude it. The words
    that count are read as if they followed each other.

    Shapes: B batch, S steps, N tags.

    Args:
        tags: List of N strings, the name of each tag: "O", and "B-", "I-", "E-" or "S-" with a
            type.
        pad_id: Tag id of padding and of tokens that begin no word, or None if only the mask
            excludes them.
        name: Name of the metric.
        dtype: Dtype of the result.

    Call arguments:
        y_true: Integer tag ids `(B, S)`, from 0.
        y_pred: Float logits `(B, S, N)`, or integer tag ids `(B, S)`.
        sample_weight: Optional weights `(B,)`.

    Returns:
        Float scalar in [0, 1]; 0 without an entity on either side.

    Raises:
        ValueError: If a name is not that of an entity's tag, or a shape does not fit.

    Example:

    >>> metric = EntityF1(["O", "B-person", "I-person", "B-place"])
    >>> true = keras.ops.array([[1, 2, 0, 3, -1]])
    >>> float(metric(true, keras.ops.array([[1, 0, 0, 3, 0]])))
    0.5

    Reference:
        Tjong Kim Sang and Buchholz, "Introduction to the CoNLL-2000 Shared Task: Chunking",
        2000, section 3, https://aclanthology.org/W00-0726/
    """

    def __init__(self, tags, pad_id=-1, name="entity_f1", dtype=None):
        super().__init__(pad_id, name, dtype)
        self.tags = list(tags)
        kinds: dict[str, int] = {}
        # The last row is for what is no word, which is outside of every entity.
        table = [_row(tag, kinds) for tag in self.tags] + [(0, False, False)]
        self._kinds, self._opening, self._continuing = map(list, zip(*table, strict=True))
        self.right = self.add_sum("right")
        self.predicted = self.add_sum("predicted")
        self.true = self.add_sum("true")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = as_ids("y_true", y_true)
        y_pred, ids = predicted_ids(y_true, y_pred)
        real = real_tokens(y_true, y_pred, self.pad_id)
        weights = row_weights(real, sample_weight)
        fill = len(self.tags)
        true, found = (
            self._flags(rows_of(tags, real, None, False, fill)[0]) for tags in (y_true, ids)
        )
        add(self.right, ops.sum(_right(true, found) * weights))
        for variable, flags in ((self.predicted, found), (self.true, true)):
            count = ops.sum(ops.cast(flags["starts"], "float32"), axis=1)
            add(variable, ops.sum(count * weights))

    def _flags(self, tags):
        """Type of the entity of each word, 0 outside; True at first words; True at last words."""
        kinds = ops.take(ops.convert_to_tensor(self._kinds, "int32"), tags)
        opening = ops.take(ops.convert_to_tensor(self._opening, "bool"), tags)
        continuing = ops.take(ops.convert_to_tensor(self._continuing, "bool"), tags)
        inside = kinds > 0
        # The type of the entity that a word can continue.
        open_kinds = ops.pad(ops.where(opening, kinds, 0)[:, :-1], [[0, 0], [1, 0]])
        continued = ops.logical_and(continuing, ops.equal(kinds, open_kinds))
        starts = ops.logical_and(inside, ops.logical_not(continued))
        continues = ops.cast(ops.logical_and(inside, continued), "int32")
        continued_next = ops.pad(continues[:, 1:], [[0, 0], [0, 1]]) > 0
        ends = ops.logical_and(inside, ops.logical_not(continued_next))
        return {"kinds": kinds, "starts": starts, "ends": ends}

    def result(self):
        return ops.cast(ratio(2.0 * self.right, self.predicted + self.true), self.dtype)

    def get_config(self):
        return {**super().get_config(), "tags": self.tags}


def _row(tag, kinds):
    """Number of the type; True if the next word can continue it; True if it continues another."""
    found = entities([tag])
    if not found:
        return 0, False, False
    ((_, _, kind),) = found
    return kinds.setdefault(kind, len(kinds) + 1), tag[0] in "BI", tag[0] in "IE"


def _right(true, found):
    """Number of true entities of each row that were found, float32 `(B,)`.

    An entity was found if at each of its words both sides have the same type, first words and
    last words.
    """
    inside = true["kinds"] > 0
    same = ops.equal(true["kinds"], found["kinds"])
    for flag in ("starts", "ends"):
        same = ops.logical_and(same, ops.equal(true[flag], found[flag]))
    wrong = ops.cast(ops.logical_and(inside, ops.logical_not(same)), "int32")
    starts = ops.reshape(ops.cast(true["starts"], "int32"), (-1,))
    # The number of the true entity that a word belongs to, over all rows.
    numbers = ops.cumsum(starts)
    count = ops.shape(numbers)[0] + 1
    errors = ops.segment_sum(ops.reshape(wrong, (-1,)), numbers, num_segments=count)
    right = ops.logical_and(starts > 0, ops.equal(ops.take(errors, numbers), 0))
    right = ops.reshape(ops.cast(right, "float32"), ops.shape(inside))
    return ops.sum(right, axis=1)
