"""Perplexity of tokens without padding."""

from typing import Any

import keras
from keras import ops

from keras_seq.metrics.summed import SummedMetric, add, ratio
from keras_seq.metrics.tokens import as_ids, as_logits, real_tokens, token_weights


@keras.saving.register_keras_serializable(package="keras_seq")
class Perplexity(SummedMetric):
    """Perplexity: exponential of the mean cross-entropy of the real tokens.

        perplexity = exp(-sum of w_bt log P(y_bt) / sum of w_bt)

    The sums run over the real tokens of all batches, as for `MaskedTokenAccuracy`: not `pad_id`,
    and not excluded by the Keras mask of the logits. The end token counts. Label smoothing of the
    loss does not affect the perplexity.

    Shapes: B batch, T steps, V vocabulary.

    Args:
        pad_id: Id of padding in `y_true`, or None to rely on the mask alone. Defaults to 0.
        name: Name of the metric.
        dtype: Dtype of the result.

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

    def __init__(self, pad_id: int | None = 0, name: str = "perplexity", dtype: Any = None) -> None:
        super().__init__(pad_id, name, dtype)
        self.cross_entropy = self.add_sum("cross_entropy")
        self.total = self.add_sum("total")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true = as_ids("y_true", y_true)
        y_pred = as_logits(y_true, y_pred)
        real = real_tokens(y_true, y_pred, self.pad_id)
        weights = token_weights(real, sample_weight)
        # Logits of padding may be NaN, and its ids may be outside the vocabulary.
        labels = ops.where(real, y_true, 0)
        logits = ops.where(real[..., None], ops.cast(y_pred, self.total.dtype), 0.0)
        chosen = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
        losses = ops.logsumexp(logits, axis=-1) - chosen
        # A weight of 0 removes even a token with an infinite loss.
        losses = ops.where(ops.equal(weights, 0), 0.0, losses * ops.cast(weights, losses.dtype))
        add(self.cross_entropy, ops.sum(losses))
        add(self.total, ops.sum(weights))

    def result(self) -> Any:
        return ops.cast(ops.exp(ratio(self.cross_entropy, self.total)), self.dtype)
