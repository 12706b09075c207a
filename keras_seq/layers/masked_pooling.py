"""Pooling over the real steps of a sequence."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import STEPS, check_axes, check_choice
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
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
        mask: Optional bool tensor `(B, S)`, True at real steps; by default the Keras mask.

    Returns:
        Tensor `(B, D)` in the compute dtype, 0 in rows without real steps. The mean is computed
        in float32 or more.

    Masks: the outputs have none. Masked steps, even NaN, affect neither outputs nor gradients.

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
        check_choice("kind", kind, KINDS)
        self.kind = kind

    def call(self, inputs: Any, mask: Any = None) -> Any:
        check_axes("inputs", inputs.shape, STEPS)
        if mask is None:
            mask = ops.ones_like(inputs[:, :, 0], dtype="bool")
        pool = {"mean": _mean, "max": masked_maximum, "last": _last}[self.kind]
        return ops.cast(pool(inputs, ops.cast(mask, "bool")), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None


def _mean(inputs: Any, mask: Any) -> Any:
    real = at_least_float32(zero_padding(inputs, mask))
    count = ops.sum(ops.cast(mask, real.dtype), axis=1, keepdims=True)
    # At least 1, because a row may have no real steps.
    return ops.sum(real, axis=1) / ops.maximum(count, 1)


def _last(inputs: Any, mask: Any) -> Any:
    step = ops.arange(backend.shape(inputs)[1])
    last = ops.max(ops.where(mask, step, -1), axis=1, keepdims=True)
    # Only the last step differs from 0.
    return ops.sum(zero_padding(inputs, ops.equal(step, last)), axis=1)


def masked_maximum(inputs: Any, mask: Any) -> Any:
    """Returns the maximum `(B, D)` of each unit over real steps, with a gradient to a single step.

    The maximum is 0 if no step is real.
    """
    # Padding gets a finite number below all real values.
    candidates = at_least_float32(inputs)
    candidates = ops.where(mask[..., None], candidates, ops.cast(-1e38, candidates.dtype))
    best = backend.argmax(candidates, axis=1)[:, None]
    is_best = ops.equal(ops.arange(backend.shape(inputs)[1])[:, None], best)  # (B, S, D)
    # Not with `ops.max`: its gradient searches for equal numbers, and finds none if a compiler
    # recomputes the inputs with different rounding.
    selected = ops.logical_and(is_best, mask[..., None])
    return ops.sum(ops.where(selected, inputs, ops.zeros((), inputs.dtype)), axis=1)
