"""Losses over sequences of token ids."""

import keras
from keras import ops

# Shape letters: B batch, T target steps, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class SequenceCrossEntropy(keras.losses.Loss):
    """Masked, label-smoothed cross-entropy, the mean over real tokens.

        loss = mean over real t of  -(1 - e) log P(y_t) - e / V sum over v of log P(v)

    Keras' `SparseCategoricalCrossentropy` has no label smoothing and its mean
    counts padding. No one-hot tensor is made.

    Shapes: B batch, T target steps, V vocabulary.

    Args:
        label_smoothing: Float in [0, 1), the e of the formula.

    Call arguments:
        y_true: Integer ids `(B, T)`; id 0 is padding and does not count.
        y_pred: Float logits `(B, T, V)`.
        sample_weight: Optional float tensor `(B,)` or `(B, T)`, weighs tokens.

    Returns:
        Float32 scalar; 0 for a batch without a real token.

    Raises:
        ValueError: If `label_smoothing` is outside [0, 1).

    Example:

    >>> loss = SequenceCrossEntropy()
    >>> round(float(loss(keras.ops.array([[1, 0]]), keras.ops.zeros((1, 2, 4)))), 4)
    1.3863

    Reference:
        Szegedy et al., "Rethinking the Inception Architecture for Computer
        Vision", 2016, section 7, https://arxiv.org/abs/1512.00567
    """

    def __init__(self, label_smoothing=0.0, name="sequence_cross_entropy", **kwargs):
        super().__init__(name=name, **kwargs)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"`label_smoothing` must be in [0, 1), received {label_smoothing!r}.")
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(y_true, "int32")
        weights = ops.cast(ops.not_equal(y_true, 0), "float32")
        if sample_weight is not None:
            sample_weight = ops.cast(sample_weight, "float32")
            if len(sample_weight.shape) == 1:
                sample_weight = sample_weight[:, None]
            weights = weights * sample_weight
        losses = self.call(y_true, y_pred)
        # Not 0 * NaN: what a model makes of padding must not reach the loss.
        losses = ops.where(ops.equal(y_true, 0), 0.0, losses)
        total = ops.sum(weights)
        return ops.sum(losses * weights) / ops.where(total > 0, total, 1.0)

    def call(self, y_true, y_pred):
        """Loss of each token, `(B, T)`."""
        y_true = ops.cast(y_true, "int32")
        logits = ops.cast(y_pred, "float32")
        losses = token_losses(y_true, logits)
        if self.label_smoothing:
            # Against the loss above: e * (z_y - mean z), for the logsumexp cancels.
            true_logits = ops.take_along_axis(logits, y_true[..., None], axis=-1)[..., 0]
            losses = losses + self.label_smoothing * (true_logits - ops.mean(logits, axis=-1))
        return losses

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def token_losses(y_true, logits):
    """-log softmax(logits)[y_true], `(B, T)`."""
    if keras.backend.backend() == "tensorflow":
        # One fused kernel for the loss and its gradient.
        return ops.sparse_categorical_crossentropy(y_true, logits, from_logits=True)
    # JAX would make a one-hot tensor of the ids.
    true_logits = ops.take_along_axis(logits, y_true[..., None], axis=-1)[..., 0]
    return ops.logsumexp(logits, axis=-1) - true_logits
