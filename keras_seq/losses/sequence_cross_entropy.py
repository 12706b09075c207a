"""Losses over sequences of token ids."""

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.custom_gradient import custom_gradient

# Shape letters: B batch, T target steps, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class SequenceCrossEntropy(keras.losses.Loss):
    """Masked, label-smoothed cross-entropy of tokens.

        loss of y_t = -(1 - e) log P(y_t) - e / V sum over v of log P(v)

    Keras' `SparseCategoricalCrossentropy` has no label smoothing and its mean
    counts padding. No one-hot tensor is made.

    Shapes: B batch, T target steps, V vocabulary.

    Args:
        label_smoothing: Float in [0, 1), the e of the formula.
        reduction: `"mean_with_sample_weight"`, the weighted mean over real
            tokens, or `"sum"`, their weighted sum. The sum serves where a batch
            is only a part of what an update is made of, on several devices or
            with accumulated gradients, and the weights already have the total
            in them.

    Call arguments:
        y_true: Integer ids `(B, T)`; id 0 is padding and does not count.
        y_pred: Float logits `(B, T, V)`; or `(B, T, M, V)` of M models that are trained
            together, the mean of whose losses counts.
        sample_weight: Optional float tensor `(B,)` or `(B, T)`, weighs tokens.

    Returns:
        Float32 scalar; 0 for a batch without a real token.

    Raises:
        ValueError: If `label_smoothing` is outside [0, 1), or `reduction` is
            another one.

    Example:

    >>> loss = SequenceCrossEntropy()
    >>> round(float(loss(keras.ops.array([[1, 0]]), keras.ops.zeros((1, 2, 4)))), 4)
    1.3863
    >>> total = SequenceCrossEntropy(reduction="sum")
    >>> round(float(total(keras.ops.array([[1, 1]]), keras.ops.zeros((1, 2, 4)))), 4)
    2.7726

    Reference:
        Szegedy et al., "Rethinking the Inception Architecture for Computer
        Vision", 2016, section 7, https://arxiv.org/abs/1512.00567
    """

    # Whether the smoothing is a part of the value; it always is one of the gradient.
    smoothed_value = True

    def __init__(
        self,
        label_smoothing=0.0,
        reduction="mean_with_sample_weight",
        name="sequence_cross_entropy",
        **kwargs,
    ):
        super().__init__(name=name, reduction=reduction, **kwargs)
        if reduction not in ("mean_with_sample_weight", "sum"):
            raise ValueError(
                f'`reduction` must be "mean_with_sample_weight" or "sum", received {reduction!r}.'
            )
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
        summed = ops.sum(losses * weights)
        if self.reduction == "sum":
            return summed
        total = ops.sum(weights)
        return summed / ops.where(total > 0, total, 1.0)

    def call(self, y_true, y_pred):
        """Loss of each token, `(B, T)`."""
        y_true = ops.cast(y_true, "int32")
        options = (self.label_smoothing, self.smoothed_value)
        if len(y_pred.shape) == 3:
            return token_losses(y_true, y_pred, *options)
        repeated = ops.repeat(y_true[..., None], y_pred.shape[2], axis=-1)
        return ops.mean(token_losses(repeated, y_pred, *options), axis=-1)

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


class ComparableCrossEntropy(SequenceCrossEntropy):
    """`SequenceCrossEntropy` that reports its value without label smoothing; internal.

    The gradient is the same as of `SequenceCrossEntropy`. The value is the cross-entropy that a
    validation reports. It needs one pass over the logits less than the smoothed one, and no update
    depends on it.
    """

    smoothed_value = False


def token_losses(y_true, logits, label_smoothing=0.0, smoothed_value=True):
    """Label-smoothed cross-entropy of each token, with its gradient written out.

        loss     = logsumexp(z) - (1 - e) z_y - e mean(z)
        gradient = softmax(z) - (1 - e) onehot(y) - e / V

    Derived automatically the gradient would take several more passes over
    `(B, T, V)`, the largest tensors of a training step.

    Args:
        y_true: Int32 tensor `(B, T)`.
        logits: Float tensor `(B, T, V)`.
        label_smoothing: Float in [0, 1), the e above.
        smoothed_value: Whether the value is the loss above, or the one without smoothing,
            logsumexp(z) - z_y. The gradient is the same.

    Returns:
        Float32 tensor `(B, T)`.
    """
    vocabulary = logits.shape[-1]
    labels = ops.reshape(y_true, (-1,))  # (B * T,)

    @custom_gradient
    def losses_of(logits):
        probabilities = ops.softmax(logits, axis=-1)  # (B * T, V)
        at_label = _at(probabilities, labels)
        log_sum = _log_sum(logits, probabilities, at_label, labels)
        share_of_all = label_smoothing if smoothed_value else 0.0
        losses = log_sum - (1.0 - share_of_all) * _at(logits, labels)
        if share_of_all:
            losses = losses - share_of_all * ops.mean(logits, axis=-1)

        def gradient(upstream):
            scale = upstream[:, None]
            # Nothing else reads the probabilities by now, so they become the gradient in place.
            pulls = backend.multiply_no_nan(probabilities, scale)
            share = label_smoothing / vocabulary
            if label_smoothing:
                pulls = pulls - share * scale
            pull_of_label = (at_label - share - (1.0 - label_smoothing))[:, None]
            rows = ops.arange(ops.shape(labels)[0], dtype="int32")
            return ops.scatter_update(
                pulls,
                ops.stack([rows, labels], axis=1),
                backend.multiply_no_nan(pull_of_label, scale)[:, 0],
            )

        return losses, gradient

    flat = ops.reshape(ops.cast(logits, "float32"), (-1, vocabulary))
    return ops.reshape(losses_of(flat), ops.shape(y_true))


def _log_sum(logits, probabilities, at_label, labels):
    """logsumexp of each row, by a term that softmax has divided by the sum.

    The label's term is at hand. Where it may have vanished it is the largest one,
    which takes two more passes over all logits; XLA makes these passes with others.
    """

    def of_largest():
        return ops.max(logits, axis=-1) - ops.log(ops.max(probabilities, axis=-1))

    if backend.name() != "tensorflow":
        return of_largest()
    of_label = _at(logits, labels) - ops.log(at_label)
    return ops.cond(ops.all(at_label > 1e-30), lambda: of_label, of_largest)


def _at(rows, index):
    """`rows[i, index[i]]` by one gather of single numbers."""
    width = rows.shape[-1]
    places = ops.arange(ops.shape(index)[0], dtype="int32") * width + index
    return ops.take(ops.reshape(rows, (-1,)), places, axis=0)
