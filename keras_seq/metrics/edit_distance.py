"""Token error rate, based on the Levenshtein distance."""

from typing import Any

import keras
from keras import ops

from keras_seq.metrics.summed import RowMetric, add, ratio
from keras_seq.metrics.tokens import PREDICTED_FILL, TRUE_FILL

# Shape letters: B batch, N steps of the truth, M steps of the prediction, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class EditDistance(RowMetric):
    """Token error rate: edit distance to the truth, divided by the length of the truth.

        rate = sum of w_b Levenshtein(y_b, prediction_b) / sum of w_b |y_b|

    The sums run over all batches, so this is the rate of the corpus rather than a mean over rows.
    It exceeds 1 if predictions are much longer than the truth. A row ends with its first `end_id`,
    which counts as a token. Rows of padding alone, which fill up a batch, do not count.

    Logits of a training model are computed with teacher forcing, so their rate is lower than that
    of decoded ids. To score translations, pass the ids from a search.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        pad_id: Id of padding, or None if no id is padding. Defaults to 0.
        end_id: Id of the end token, or None if rows end with padding alone. Defaults to 3.
        name: Name of the metric.
        dtype: Dtype of the result.

    Call arguments:
        y_true: Integer ids `(B, T)`.
        y_pred: Float logits `(B, T, V)`, whose Keras mask is respected, or integer ids `(B, M)`.
        sample_weight: Optional weights `(B,)`.

    Returns:
        Float scalar, 0 or more; 0 before the first row.

    Raises:
        ValueError: If a shape does not fit.

    Example:

    >>> metric = EditDistance()
    >>> true = keras.ops.array([[5, 6, 7, 3]])
    >>> float(metric(true, keras.ops.array([[5, 7, 3, 0]])))
    0.25

    Reference:
        Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", 1966
    """

    def __init__(
        self,
        pad_id: int | None = 0,
        end_id: int | None = 3,
        name: str = "edit_distance",
        dtype: Any = None,
    ) -> None:
        super().__init__(pad_id, end_id, name, dtype)
        self.errors = self.add_sum("errors")
        self.total = self.add_sum("total")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        rows = self.rows(y_true, y_pred, sample_weight, keep_end=True)
        true, true_lengths, ids, lengths, weights = rows
        distances = levenshtein(true, true_lengths, ids, lengths)
        add(self.errors, ops.sum(ops.cast(distances, "float32") * weights))
        add(self.total, ops.sum(ops.cast(true_lengths, "float32") * weights))

    def result(self) -> Any:
        return ops.cast(ratio(self.errors, self.total), self.dtype)


def levenshtein(true: Any, true_lengths: Any, ids: Any, lengths: Any) -> Any:
    """Returns the edit distance of each pair of rows, int32 `(B,)`.

    The table of distances is filled along its antidiagonals, whose cells are independent of each
    other. Cell i of antidiagonal k is the distance between the first i true tokens and the first k
    - i predicted tokens. Ids are int32 `(B, N)` and `(B, M)`, lengths `(B,)`.
    """
    # Column i is the i-th token, counted from 1.
    true = ops.pad(true, [[0, 0], [1, 0]], constant_values=TRUE_FILL)
    ids = ops.pad(ids, [[0, 0], [1, 0]], constant_values=PREDICTED_FILL)
    cells = ops.cumsum(ops.ones_like(true), axis=1) - 1  # (B, N + 1)
    last_id = ops.shape(ids)[1] - 1
    lasts = true_lengths + lengths

    def shifted(diagonal):
        return ops.pad(diagonal[:, :-1], [[0, 0], [1, 0]])

    def fill_next(k, two_before, one_before, distances):
        others = ops.take_along_axis(ids, ops.clip(k - cells, 0, last_id), axis=1)
        replaced = shifted(two_before) + ops.cast(ops.not_equal(true, others), "int32")
        skipped = ops.minimum(one_before, shifted(one_before)) + 1
        diagonal = ops.minimum(replaced, skipped)
        # At the borders of the table k tokens face an empty row. Cells beyond are not read.
        border = ops.logical_or(ops.equal(cells, 0), cells >= k)
        diagonal = ops.where(border, k, diagonal)
        at_end = ops.take_along_axis(diagonal, true_lengths[:, None], axis=1)[:, 0]
        return k + 1, one_before, diagonal, ops.where(ops.equal(lasts, k), at_end, distances)

    zeros = ops.zeros_like(true)
    start = (ops.ones((), "int32"), zeros, zeros, ops.zeros_like(true_lengths))
    last = ops.max(lasts, initial=0)
    return ops.while_loop(lambda k, *_: k <= last, fill_next, start)[-1]
