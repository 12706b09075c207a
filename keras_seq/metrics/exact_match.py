"""Fraction of rows without an error."""

from typing import Any

import keras
from keras import ops

from keras_seq.metrics.summed import RowMetric, add, ratio


@keras.saving.register_keras_serializable(package="keras_seq")
class ExactMatch(RowMetric):
    """Fraction of the rows whose tokens are all right, including the end token.

        exact match = sum of w_b [prediction_b = y_b] / sum of w_b

    Use it for short targets that are either right or wrong, such as inflections. A row ends with
    its first `end_id`; what follows is ignored. Rows of padding alone, which fill up a batch, do
    not count. Logits of a training model are computed with teacher forcing, so their exact match
    is at least that of decoded ids. To score translations, pass the ids from a search.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        pad_id: Id of padding, or None if no id is padding. Defaults to 0.
        end_id: Id of the end token, or None if rows end with padding alone. Defaults to 3.
        name: Name of the metric.
        dtype: Dtype of the result.

    Call arguments:
        y_true: Integer ids `(B, T)`.
        y_pred: Integer ids `(B, M)`, or float logits `(B, T, V)`, whose Keras mask is respected.
        sample_weight: Optional weights `(B,)` of the rows.

    Returns:
        Float scalar in [0, 1]; 0 before the first row.

    Raises:
        ValueError: If a shape does not fit.

    Example:

    >>> metric = ExactMatch()
    >>> true = keras.ops.array([[5, 6, 3, 0], [7, 3, 0, 0]])
    >>> float(metric(true, keras.ops.array([[5, 6, 3, 9], [7, 8, 3, 0]])))
    0.5
    """

    def __init__(
        self,
        pad_id: int | None = 0,
        end_id: int | None = 3,
        name: str = "exact_match",
        dtype: Any = None,
    ) -> None:
        super().__init__(pad_id, end_id, name, dtype)
        self.right = self.add_sum("right")
        self.total = self.add_sum("total")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        rows = self.rows(y_true, y_pred, sample_weight, keep_end=True)
        true, true_lengths, ids, lengths, weights = rows
        # Pad both sides to the sum of their widths.
        padded = ops.pad(true, [[0, 0], [0, ops.shape(ids)[1]]], constant_values=0)
        ids = ops.pad(ids, [[0, 0], [0, ops.shape(true)[1]]], constant_values=0)
        steps = ops.cumsum(ops.ones_like(ids), axis=1) - 1
        same = ops.logical_or(ops.equal(padded, ids), steps >= true_lengths[:, None])
        right = ops.logical_and(ops.all(same, axis=1), ops.equal(true_lengths, lengths))
        add(self.right, ops.sum(ops.where(right, weights, 0.0)))
        add(self.total, ops.sum(weights))

    def result(self) -> Any:
        return ops.cast(ratio(self.right, self.total), self.dtype)
