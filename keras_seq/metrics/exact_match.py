"""Share of rows that are right from the first token to the last."""

import keras
from keras import ops

from keras_seq.metrics.summed import SummedMetric, add, ratio
from keras_seq.metrics.tokens import pairs_of_rows

# Shape letters: B batch, T steps, M steps of the prediction, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class ExactMatch(SummedMetric):
    """Share of the rows whose tokens are all right, the end token included.

        exact match = sum of w_b [prediction_b = y_b] / sum of w_b

    A row ends with its first `end_id`: the end token counts, and what follows it does not.
    A row of padding alone, which fills up a batch, does not count.

    Logits come from a model that reads the true tokens before each step (teacher forcing), so
    their exact match is at least that of decoded ids. For the exact match of translations pass
    the ids that a search found.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        pad_id: Id of padding, or None if no id is padding.
        end_id: Id of the end token, or None if rows end with padding alone.
        name: Name of the metric.
        dtype: Dtype of the result.

    Call arguments:
        y_true: Integer ids `(B, T)`.
        y_pred: Float logits `(B, T, V)`, whose mask is respected, or integer ids `(B, M)`.
        sample_weight: Optional weights `(B,)`.

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

    def __init__(self, pad_id=0, end_id=3, name="exact_match", dtype=None):
        super().__init__(pad_id, name, dtype)
        self.end_id = end_id
        self.right = self.add_sum("right")
        self.total = self.add_sum("total")

    def update_state(self, y_true, y_pred, sample_weight=None):
        true, true_lengths, ids, lengths, weights = pairs_of_rows(
            y_true, y_pred, sample_weight, self.pad_id, self.end_id, keep_end=True
        )
        # To the same width, which is at least that of both.
        wide = ops.pad(true, [[0, 0], [0, ops.shape(ids)[1]]], constant_values=0)
        ids = ops.pad(ids, [[0, 0], [0, ops.shape(true)[1]]], constant_values=0)
        steps = ops.cumsum(ops.ones_like(ids), axis=1) - 1
        same = ops.logical_or(ops.equal(wide, ids), steps >= true_lengths[:, None])
        right = ops.logical_and(ops.all(same, axis=1), ops.equal(true_lengths, lengths))
        add(self.right, ops.sum(ops.where(right, weights, 0.0)))
        add(self.total, ops.sum(weights))

    def result(self):
        return ops.cast(ratio(self.right, self.total), self.dtype)

    def get_config(self):
        return {**super().get_config(), "end_id": self.end_id}
