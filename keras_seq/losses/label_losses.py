"""Losses over labels: of a text, or of each word of one."""

import keras
from keras import ops

from keras_seq.losses.sequence_cross_entropy import token_losses

# Shape letters: B batch, S steps, N labels.

# Where there is no label: padding, or the middle of a word.
NO_LABEL = -1


@keras.saving.register_keras_serializable(package="keras_seq")
class LabelCrossEntropy(keras.losses.Loss):
    """Masked, label-smoothed cross-entropy of labels.

    As `SequenceCrossEntropy`, but labels are numbered from 0, and -1 is none.

    Shapes: B batch, S steps, N labels.

    Args:
        label_smoothing: Float in [0, 1).
        reduction: `"mean_with_sample_weight"`, over all labels, or `"sum"`.

    Call arguments:
        y_true: Integers `(B,)` or `(B, S)`; -1 does not count.
        y_pred: Float logits `(B, N)` or `(B, S, N)`.
        sample_weight: Optional float tensor `(B,)`, weighs all labels of a row.

    Returns:
        Float32 scalar; 0 for a batch without a label.

    Raises:
        ValueError: If `label_smoothing` is outside [0, 1), or `reduction` is another one.

    Example:

    >>> loss = LabelCrossEntropy()
    >>> round(float(loss(keras.ops.array([1, -1]), keras.ops.zeros((2, 4)))), 4)
    1.3863
    """

    smoothed_value = True

    def __init__(
        self,
        label_smoothing=0.0,
        reduction="mean_with_sample_weight",
        name="label_cross_entropy",
        **kwargs,
    ):
        super().__init__(name=name, reduction=_checked(reduction), **kwargs)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"`label_smoothing` must be in [0, 1), received {label_smoothing!r}.")
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(y_true, "int32")
        real = ops.not_equal(y_true, NO_LABEL)
        # Not 0 * NaN: what a model makes of padding must not reach the loss.
        losses = ops.where(real, self.call(y_true, y_pred), 0.0)
        return _reduced(losses, ops.cast(real, "float32"), sample_weight, self.reduction)

    def call(self, y_true, y_pred):
        """Loss of each label, of the shape of `y_true`."""
        rows = ops.reshape(ops.maximum(y_true, 0), (-1, 1))
        logits = ops.reshape(y_pred, (-1, 1, y_pred.shape[-1]))
        losses = token_losses(rows, logits, self.label_smoothing, self.smoothed_value)
        return ops.reshape(losses, ops.shape(y_true))

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


class ComparableLabelCrossEntropy(LabelCrossEntropy):
    """`LabelCrossEntropy` that reports its value without label smoothing; internal.

    See `losses.ComparableCrossEntropy`.
    """

    smoothed_value = False


class ChainLoss(keras.losses.Loss):
    """Negative log-likelihood of all tags of a text, by a conditional random field.

    Its weights are those of the layer, and are trained with the model that has it.

    Shapes: B batch, S steps, N tags.

    Args:
        field: A `keras_seq.layers.ConditionalRandomField`, built.
        reduction: `"mean_with_sample_weight"`, over all tags, or `"sum"`.

    Call arguments:
        y_true: Integers `(B, S)`; -1 where there is none, which is left out of the chain.
        y_pred: Float potentials `(B, S, N)`.
        sample_weight: Optional float tensor `(B,)`.

    Returns:
        Float32 scalar; 0 for a batch without a tag.

    Raises:
        ValueError: If `reduction` is another one.
    """

    def __init__(self, field, reduction="mean_with_sample_weight", name="chain", **kwargs):
        super().__init__(name=name, reduction=_checked(reduction), **kwargs)
        self.field = field

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(y_true, "int32")
        real = ops.not_equal(y_true, NO_LABEL)
        losses = -self.field.log_likelihood(y_pred, ops.maximum(y_true, 0), real)  # (B,)
        some = ops.any(real, axis=-1)
        losses = ops.where(some, ops.cast(losses, "float32"), 0.0)
        tags = ops.sum(ops.cast(real, "float32"), axis=-1)
        if self.reduction == "sum":
            return _reduced(losses, ops.ones_like(tags), sample_weight, "sum")
        weights = 1.0 if sample_weight is None else ops.cast(sample_weight, "float32")
        total = ops.sum(tags * weights)
        return ops.sum(losses * weights) / ops.where(total > 0, total, 1.0)


def _checked(reduction):
    if reduction not in ("mean_with_sample_weight", "sum"):
        raise ValueError(
            f'`reduction` must be "mean_with_sample_weight" or "sum", received {reduction!r}.'
        )
    return reduction


def _reduced(losses, weights, sample_weight, reduction):
    """The weighted sum of losses, or their weighted mean."""
    if sample_weight is not None:
        sample_weight = ops.cast(sample_weight, "float32")
        if len(weights.shape) == 2:
            sample_weight = sample_weight[:, None]
        weights = weights * sample_weight
    summed = ops.sum(losses * weights)
    if reduction == "sum":
        return summed
    total = ops.sum(weights)
    return summed / ops.where(total > 0, total, 1.0)
