"""A loss that guides attention by word alignments."""

import keras
from keras import ops

# Shape letters: B batch, T target steps, S source steps.


@keras.saving.register_keras_serializable(package="keras_seq")
class GuidedAlignmentLoss(keras.losses.Loss):
    """Cross-entropy of attention weights with respect to word alignments, as a weighted sum.

        loss = factor * sum over b, t of  w_b * -(sum over s of A_bts log a_bts)

    A target token without an alignment link, which is a row of zeros in A, does not count. A
    (`y_true`) and a (`y_pred`) are `(B, T, S)`, and w (`sample_weight`) is `(B,)`.

    Example:

    >>> loss = GuidedAlignmentLoss()
    >>> round(float(loss(keras.ops.array([[[1.0, 0.0]]]), keras.ops.array([[[0.5, 0.5]]]))), 4)
    0.6931

    Reference:
        Chen et al., "Guided Alignment Training for Topic-Aware Neural Machine
        Translation", 2016, section 3.2, https://arxiv.org/abs/1607.01628
    """

    def __init__(self, factor=1.0, name="guided_alignment", **kwargs):
        super().__init__(name=name, **kwargs)
        if factor < 0:
            raise ValueError(f"`factor` must not be negative, received {factor!r}.")
        self.factor = factor

    def __call__(self, y_true, y_pred, sample_weight=None):
        losses = self.call(y_true, y_pred)
        if sample_weight is not None:
            losses = losses * ops.cast(sample_weight, "float32")[:, None]
        return self.factor * ops.sum(losses)

    def call(self, y_true, y_pred):
        """Loss of each target step, `(B, T)`."""
        # The attention to padding is 0, which has no logarithm.
        log = ops.log(ops.maximum(ops.cast(y_pred, "float32"), 1e-9))
        return -ops.sum(ops.cast(y_true, "float32") * log, axis=-1)

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}
