"""Accuracy of tokens without padding."""

import keras
from keras import ops

from keras_seq.metrics.summed import SummedMetric, add, ratio
from keras_seq.metrics.tokens import as_ids, as_logits, real_tokens, token_weights

# Shape letters: B batch, T steps, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class MaskedTokenAccuracy(SummedMetric):
    """Share of the real tokens that the model ranks first.

        accuracy = sum of w_bt [argmax(logits_bt) = y_bt] / sum of w_bt

    The sums run over the real tokens of all batches: those that are not `pad_id` and that the
    mask of the logits, if there is one, does not exclude. The end token is a real token.
    Keras' `SparseCategoricalAccuracy` needs the mask, which it loses during `fit` on JAX.

    Shapes: B batch, T steps, V vocabulary.

    Args:
        pad_id: Id of padding in `y_true`, or None if only the mask says what is padding.
        name: Name of the metric.
        dtype: Dtype of the result.

    Call arguments:
        y_true: Integer ids `(B, T)`.
        y_pred: Float logits `(B, T, V)`.
        sample_weight: Optional weights, `(B,)` of rows or `(B, T)` of tokens.

    Returns:
        Float scalar in [0, 1]; 0 before the first real token.

    Raises:
        ValueError: If a shape does not fit.

    Example:

    >>> metric = MaskedTokenAccuracy()
    >>> logits = keras.ops.one_hot([[5, 6, 0, 0]], 8)
    >>> float(metric(keras.ops.array([[5, 7, 0, 0]]), logits))
    0.5
    """

    def __init__(self, pad_id=0, name="masked_token_accuracy", dtype=None):
        super().__init__(pad_id, name, dtype)
        self.right = self.add_sum("right")
        self.total = self.add_sum("total")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = as_ids("y_true", y_true)
        y_pred = as_logits(y_true, y_pred)
        ids = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        weights = token_weights(real_tokens(y_true, y_pred, self.pad_id), sample_weight)
        add(self.right, ops.sum(ops.where(ops.equal(ids, y_true), weights, 0.0)))
        add(self.total, ops.sum(weights))

    def result(self):
        return ops.cast(ratio(self.right, self.total), self.dtype)
