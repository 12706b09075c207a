"""Accuracy of tokens without padding."""

from typing import Any

import keras
from keras import ops

from keras_seq.metrics.summed import TokenMean


@keras.saving.register_keras_serializable(package="keras_seq")
class MaskedTokenAccuracy(TokenMean):
    """Fraction of the real tokens that the model ranks first.

        accuracy = sum of w_bt [argmax(logits_bt) = y_bt] / sum of w_bt

    The sums run over the real tokens of all batches. A token is real if it is not `pad_id` and the
    Keras mask of the logits, if any, is True. The end token counts. Unlike
    `keras.metrics.SparseCategoricalAccuracy`, this metric does not depend on the Keras mask, which
    `fit` loses on JAX.

    Shapes: B batch, T steps, V vocabulary.

    Args:
        pad_id: Id of padding in `y_true`, or None to rely on the mask alone. Defaults to 0.
        name, dtype: Name of the metric, and dtype of the result.

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

    default_name = "masked_token_accuracy"

    def token_values(self, y_true: Any, y_pred: Any, real: Any) -> Any:
        return ops.equal(ops.cast(ops.argmax(y_pred, axis=-1), "int32"), y_true)
