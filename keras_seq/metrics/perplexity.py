"""Perplexity of tokens without padding."""

from typing import Any

import keras
from keras import ops

from keras_seq.metrics.summed import TokenMean


@keras.saving.register_keras_serializable(package="keras_seq")
class Perplexity(TokenMean):
    """Perplexity: exponential of the mean cross-entropy of the real tokens.

        perplexity = exp(-sum of w_bt log P(y_bt) / sum of w_bt)

    The sums run over the real tokens of all batches, as for `MaskedTokenAccuracy`: not `pad_id`,
    and not excluded by the Keras mask of the logits. The end token counts. Label smoothing of the
    loss does not affect the perplexity.

    Shapes: B batch, T steps, V vocabulary.

    Args:
        pad_id, name, dtype: As for `MaskedTokenAccuracy`.

    Call arguments:
        y_true: Integer ids `(B, T)`.
        y_pred: Float logits `(B, T, V)`.
        sample_weight: Optional weights of rows `(B,)` or tokens `(B, T)`.

    Returns:
        Float scalar, 1 or more; 1 before the first real token.

    Raises:
        ValueError: If a shape does not fit.

    Example:

    >>> metric = Perplexity()
    >>> round(float(metric(keras.ops.array([[1, 0]]), keras.ops.zeros((1, 2, 4)))), 4)
    4.0

    Reference:
        Jelinek et al., "Perplexity: a measure of the difficulty of speech recognition tasks",
        1977, https://doi.org/10.1121/1.2016299
    """

    default_name = "perplexity"

    def token_values(self, y_true: Any, y_pred: Any, real: Any) -> Any:
        # Logits of padding may be NaN, and its ids may be outside the vocabulary.
        labels = ops.where(real, y_true, 0)
        logits = ops.where(real[..., None], ops.cast(y_pred, self.total.dtype), 0.0)
        chosen = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
        return ops.logsumexp(logits, axis=-1) - chosen

    def of_mean(self, mean: Any) -> Any:
        return ops.exp(mean)
