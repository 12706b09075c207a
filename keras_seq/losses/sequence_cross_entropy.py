"""Cross-entropy of token ids."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.custom_gradient import custom_gradient
from keras_seq.losses.masked_loss import MaskedCrossEntropy


@keras.saving.register_keras_serializable(package="keras_seq")
class SequenceCrossEntropy(MaskedCrossEntropy):
    """Masked cross-entropy of target tokens, with label smoothing.

        loss of y_t = -(1 - e) log P(y_t) - e / V sum over v of log P(v)

    Use it to train sequence-to-sequence and language models. Unlike in
    `keras.losses.SparseCategoricalCrossentropy`, padding does not count in the mean and labels can
    be smoothed. No one-hot tensor is built, and the explicit gradient needs fewer passes over the
    logits, the largest tensor of a training step.

    Shapes: B batch, T target steps, V vocabulary.

    Args:
        label_smoothing: Float e in [0, 1). Defaults to 0.
        reduction: `"mean_with_sample_weight"`, the weighted mean over real tokens, or `"sum"`,
            their weighted sum. Use the sum if an update combines several batches, by gradient
            accumulation or on several devices, and the weights already divide by the total.
            Defaults to the mean.

    Call arguments:
        y_true: Integer ids `(B, T)`; id 0 is padding and does not count.
        y_pred: Float logits `(B, T, V)`, or `(B, T, M, V)` of M models trained together, whose
            losses are averaged.
        sample_weight: Optional float tensor, `(B,)` of rows or `(B, T)` of tokens.

    Returns:
        Float32 scalar; 0 for a batch without real tokens.

    Raises:
        ValueError: If `label_smoothing` is outside [0, 1) or `reduction` is not one of the two.

    Example:

    >>> loss = SequenceCrossEntropy()
    >>> round(float(loss(keras.ops.array([[1, 0]]), keras.ops.zeros((1, 2, 4)))), 4)
    1.3863
    >>> total = SequenceCrossEntropy(reduction="sum")
    >>> round(float(total(keras.ops.array([[1, 1]]), keras.ops.zeros((1, 2, 4)))), 4)
    2.7726

    Reference:
        Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016,
        section 7, https://arxiv.org/abs/1512.00567
    """

    ignored_id = 0
    default_name = "sequence_cross_entropy"

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each token, `(B, T)`."""
        y_true = ops.cast(y_true, "int32")
        options = (self.label_smoothing, self.smoothed_value)
        if len(y_pred.shape) == 3:
            return token_losses(y_true, y_pred, *options)
        repeated = ops.repeat(y_true[..., None], y_pred.shape[2], axis=-1)
        return ops.mean(token_losses(repeated, y_pred, *options), axis=-1)


class ComparableCrossEntropy(SequenceCrossEntropy):
    """`SequenceCrossEntropy` that excludes label smoothing from its value; internal.

    The value is comparable to the cross-entropy of a validation, and needs one pass less over the
    logits. The gradient is the same as that of `SequenceCrossEntropy`.
    """

    smoothed_value = False


def token_losses(
    y_true: Any, logits: Any, label_smoothing: float = 0.0, smoothed_value: bool = True
) -> Any:
    """Label-smoothed cross-entropy `(B, T)` of each token, in float32, with an explicit gradient.

        loss     = logsumexp(z) - (1 - e) z_y - e mean(z)
        gradient = softmax(z) - (1 - e) onehot(y) - e / V

    If `smoothed_value` is False, the value is logsumexp(z) - z_y and the gradient is the same.
    """
    vocabulary = logits.shape[-1]
    labels = ops.reshape(y_true, (-1,))  # (B * T,)

    @custom_gradient
    def losses_of(logits: Any) -> tuple[Any, Callable[[Any], Any]]:
        probabilities = ops.softmax(logits, axis=-1)  # (B * T, V)
        at_label = _at(probabilities, labels)
        log_sum = _log_sum(logits, probabilities, at_label, labels)
        smoothing = label_smoothing if smoothed_value else 0.0
        losses = log_sum - (1.0 - smoothing) * _at(logits, labels)
        if smoothing:
            losses = losses - smoothing * ops.mean(logits, axis=-1)

        def gradient(upstream: Any) -> Any:
            scale = upstream[:, None]
            # No later code uses `probabilities`, so TensorFlow reuses their memory for the result.
            slopes = backend.multiply_no_nan(probabilities, scale)
            uniform = label_smoothing / vocabulary
            if label_smoothing:
                slopes = slopes - uniform * scale
            slope_at_label = (at_label - uniform - (1.0 - label_smoothing))[:, None]
            rows = ops.arange(backend.shape(labels)[0], dtype="int32")
            return ops.scatter_update(
                slopes,
                ops.stack([rows, labels], axis=1),
                backend.multiply_no_nan(slope_at_label, scale)[:, 0],
            )

        return losses, gradient

    flat = ops.reshape(ops.cast(logits, "float32"), (-1, vocabulary))
    return ops.reshape(losses_of(flat), backend.shape(y_true))


def _log_sum(logits: Any, probabilities: Any, at_label: Any, labels: Any) -> Any:
    """Returns logsumexp of each row as z_i - log p_i, exact for any i whose p_i is not 0.

    The label serves as i unless its probability underflows in some row; then i is the maximum.
    The maximum alone would be simpler, but its two passes over the logits add some 30 % to the
    time of the loss on TensorFlow (1,000 tokens, vocabulary of 8,000). On JAX XLA fuses these
    passes, and the condition would add as much.
    """

    def of_largest() -> Any:
        return ops.max(logits, axis=-1) - ops.log(ops.max(probabilities, axis=-1))

    if backend.name() != "tensorflow":
        return of_largest()
    of_label = _at(logits, labels) - ops.log(at_label)
    return ops.cond(ops.all(at_label > 1e-30), lambda: of_label, of_largest)


def _at(rows: Any, index: Any) -> Any:
    """Returns `rows[i, index[i]]` for each row i, with one gather from the flattened rows."""
    width = rows.shape[-1]
    flat_index = ops.arange(backend.shape(index)[0], dtype="int32") * width + index
    return ops.take(ops.reshape(rows, (-1,)), flat_index, axis=0)
