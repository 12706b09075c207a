"""Pooling over the real steps of a sequence."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.maximum import masked_maximum
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import zero_padding

KINDS = ("mean", "max", "last")


@keras.saving.register_keras_serializable(package="keras_seq")
class MaskedPooling(ConfiguredLayer):
    """Pooling of the real steps of a sequence into one vector.

        mean:  y[b] = 1 / n[b] * sum over the real s of x[b, s],  n[b] their number
        max:   y[b] = maximum over the real s of x[b, s], separately for each feature
        last:  y[b] = x[b, s] of the last real s

    Use it between an encoder and a classifier. `keras.layers.GlobalAveragePooling1D` divides by 0
    if no step is real and adds up NaN in padding; `GlobalMaxPooling1D` ignores masks.

    Shapes: B batch, S steps, D features.

    Args:
        kind: "mean", "max" or "last". Defaults to "mean".

    Call arguments:
        inputs: Float tensor `(B, S, D)`.
        mask: Optional bool tensor `(B, S)`, True at real steps. By default the Keras mask of
            `inputs`; without one all steps are real.

    Returns:
        Tensor `(B, D)` in the compute dtype, 0 in rows without real steps. The mean is computed
        in float32 or more.

    Masks: the outputs have none. The content of masked steps, even NaN, affects neither outputs
    nor gradients.

    Raises:
        ValueError: If `kind` has another value, or the inputs are not of shape `(B, S, D)`.

    Example:

    >>> inputs = keras.ops.array([[[1.0, 9.0], [3.0, 5.0], [8.0, 8.0]]])
    >>> mask = keras.ops.array([[True, True, False]])
    >>> for kind in ("mean", "max", "last"):
    ...     print([float(number) for number in MaskedPooling(kind)(inputs, mask=mask)[0]])
    [2.0, 7.0]
    [3.0, 9.0]
    [3.0, 5.0]

    Reference:
        Conneau et al., "Supervised Learning of Universal Sentence Representations from Natural
        Language Inference Data", 2017, section 3.2, https://arxiv.org/abs/1705.02364
    """

    def __init__(self, kind: str = "mean", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if kind not in KINDS:
            raise ValueError(
                f"`kind` must be one of {', '.join(map(repr, KINDS))}, received {kind!r}."
            )
        self.kind = kind
        self.supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        if len(inputs.shape) != 3:
            raise ValueError(
                "The inputs must be of shape (batch, steps, features), "
                f"received {tuple(inputs.shape)}."
            )
        if mask is None:
            mask = ops.ones_like(inputs[:, :, 0], dtype="bool")
        pool = {"mean": _mean, "max": masked_maximum, "last": _last}[self.kind]
        return ops.cast(pool(inputs, ops.cast(mask, "bool")), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None


def _mean(inputs, mask):
    real = at_least_float32(zero_padding(inputs, mask))
    count = ops.sum(ops.cast(mask, real.dtype), axis=1, keepdims=True)
    # At least 1, because a row may have no real steps.
    return ops.sum(real, axis=1) / ops.maximum(count, 1)


def _last(inputs, mask):
    step = ops.arange(ops.shape(inputs)[1])
    last = ops.max(ops.where(mask, step, -1), axis=1, keepdims=True)
    # All other steps are 0 in the sum.
    return ops.sum(zero_padding(inputs, ops.equal(step, last)), axis=1)
