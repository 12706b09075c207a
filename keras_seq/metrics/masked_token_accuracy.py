"""Accuracy of tokens without padding."""

from typing import Any

import keras
from keras import ops

from keras_seq.metrics.summed import SummedMetric, add, ratio
from keras_seq.metrics.tokens import as_ids, as_logits, real_tokens, token_weights


@keras.saving.register_keras_serializable(package="keras_seq")
class MaskedTokenAccuracy(SummedMetric):
    """Fraction of the real tokens that the model ranks first.

        accuracy = sum of w_bt [argmax(logits_bt) = y_bt] / sum of w_bt

    The sums run over the real tokens of all batches. A token is real if it is not `pad_id` and the
    Keras mask of the logits, if any, is True. The end token counts. Unlike
    `keras.metrics.SparseCategoricalAccuracy`, this metric does not depend on the Keras mask, which
    `fit` loses on JAX.

    Shapes: B batch, T steps, V vocabulary.

    Args:
        pad_id: Id of padding in `y_true`, or None to rely on the mask alone. Defaults to 0.
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

    def __init__(
        self, pad_id: int | None = 0, name: str = "masked_token_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(pad_id, name, dtype)
        self.right = self.add_sum("right")
        self.total = self.add_sum("total")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true = as_ids("y_true", y_true)
        y_pred = as_logits(y_true, y_pred)
        ids = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        weights = token_weights(real_tokens(y_true, y_pred, self.pad_id), sample_weight)
        add(self.right, ops.sum(ops.where(ops.equal(ids, y_true), weights, 0.0)))
        add(self.total, ops.sum(weights))

    def result(self) -> Any:
        return ops.cast(ratio(self.right, self.total), self.dtype)
