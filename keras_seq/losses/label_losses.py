"""Losses of the labels of a text or of its words."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.losses.masked_loss import MaskedCrossEntropy, MaskedLoss
from keras_seq.losses.sequence_cross_entropy import token_losses

# Target at padding, and at subwords that do not begin a word.
NO_LABEL = -1


@keras.saving.register_keras_serializable(package="keras_seq")
class LabelCrossEntropy(MaskedCrossEntropy):
    """Masked cross-entropy of labels, with label smoothing.

        loss of y = -(1 - e) log P(y) - e / N sum over n of log P(n)

    Use it to train classifiers and taggers. It is `SequenceCrossEntropy` for labels that are
    numbered from 0, with -1 where there is no label.

    Shapes: B batch, S steps, N labels.

    Args:
        label_smoothing: Float e in [0, 1). Defaults to 0.
        reduction: `"mean_with_sample_weight"`, the weighted mean over labels, or `"sum"`. Defaults
            to the mean.

    Call arguments:
        y_true: Integer labels, `(B,)` of texts or `(B, S)` of steps; -1 does not count.
        y_pred: Float logits `(B, N)` or `(B, S, N)`; or `(B, M, N)` for labels `(B,)`, of M models
            trained together, whose losses are averaged.
        sample_weight: Optional float tensor `(B,)`, the weight of all labels of a row.

    Returns:
        Float32 scalar; 0 for a batch without labels.

    Raises:
        ValueError: If `label_smoothing` is outside [0, 1) or `reduction` is not one of the two.

    Example:

    >>> loss = LabelCrossEntropy()
    >>> round(float(loss(keras.ops.array([1, -1]), keras.ops.zeros((2, 4)))), 4)
    1.3863

    Reference:
        Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016,
        section 7, https://arxiv.org/abs/1512.00567
    """

    ignored_id = NO_LABEL
    default_name = "label_cross_entropy"

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each label, in the shape of `y_true`."""
        labels = ops.maximum(y_true, 0)
        members = len(y_pred.shape) - len(y_true.shape) > 1
        if members:
            labels = ops.repeat(labels[:, None], y_pred.shape[1], axis=1)
        rows = ops.reshape(labels, (-1, 1))
        logits = ops.reshape(y_pred, (-1, 1, y_pred.shape[-1]))
        losses = token_losses(rows, logits, self.label_smoothing, self.smoothed_value)
        losses = ops.reshape(losses, backend.shape(labels))
        return ops.mean(losses, axis=1) if members else losses


class ComparableLabelCrossEntropy(LabelCrossEntropy):
    """`LabelCrossEntropy` that excludes label smoothing from its value; internal.

    See `ComparableCrossEntropy`.
    """

    smoothed_value = False


class ChainLoss(MaskedLoss):
    """Negative log-likelihood of the tags of a text under a conditional random field.

        loss = -sum over texts of log P(y | x) / number of tags

    Use it to train a tagger whose model has a `ConditionalRandomField`. The weights of the field
    belong to the model and are trained with it.

    Shapes: B batch, S steps, N tags.

    Args:
        field: A built `keras_seq.layers.ConditionalRandomField`.
        reduction: `"mean_with_sample_weight"`, the weighted mean over tags, or `"sum"`. Defaults
            to the mean.

    Call arguments:
        y_true: Integer tags `(B, S)`; steps with -1 are left out of the chain.
        y_pred: Float potentials `(B, S, N)`.
        sample_weight: Optional float tensor `(B,)`.

    Returns:
        Float32 scalar; 0 for a batch without tags.

    Raises:
        ValueError: If `reduction` is not one of the two.

    Example:

    >>> from keras_seq.layers import ConditionalRandomField
    >>> field = ConditionalRandomField(use_boundary=False)
    >>> field.build((None, None, 2))
    >>> _ = field.transitions.assign([[0.0, 0.0], [0.0, 0.0]])
    >>> loss = ChainLoss(field)
    >>> round(float(loss(keras.ops.array([[1, 0, -1]]), keras.ops.zeros((1, 3, 2)))), 4)
    0.6931

    Reference:
        Lafferty, McCallum and Pereira, "Conditional Random Fields", ICML 2001
    """

    def __init__(
        self,
        field: keras.layers.Layer,
        reduction: str = "mean_with_sample_weight",
        name: str = "chain",
        **kwargs: Any,
    ) -> None:
        super().__init__(reduction, name, **kwargs)
        self.field = field

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_true = ops.cast(y_true, "int32")
        real = ops.not_equal(y_true, NO_LABEL)
        losses = -self.field.log_likelihood(y_pred, ops.maximum(y_true, 0), real)  # (B,)
        losses = ops.where(ops.any(real, axis=-1), ops.cast(losses, "float32"), 0.0)
        num_tags = ops.sum(ops.cast(real, "float32"), axis=-1)
        return self.reduce(losses, num_tags, sample_weight)
