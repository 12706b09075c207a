"""Reversal of the real steps of a sequence."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import STEPS, check_axes
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.scaled_dot_product import zero_padding


@keras.saving.register_keras_serializable(package="keras_seq")
class ReversedSequence(ConfiguredLayer):
    """Reverses the real steps of a sequence and leaves padding in place.

        y[b, r_k] = x[b, r_(n+1-k)]     r_1 ... r_n: the indices of the real steps of row b

    Placed before a unidirectional encoder, it brings the start of the source close to the start of
    the target. Flipping the whole axis would move the padding to the front.

    Shapes: B batch, S steps, D features.

    Call arguments:
        inputs: Float tensor `(B, S, D)`.
        mask: Optional bool tensor `(B, S)`, True at real steps; by default the Keras mask.

    Returns:
        Tensor `(B, S, D)` in the compute dtype, 0 at padding.

    Masks: the mask passes through. Masked steps, even NaN, affect neither outputs nor gradients.

    Raises:
        ValueError: If the inputs are not of shape `(B, S, D)`.

    Example:

    >>> inputs = keras.ops.array([[[1.0], [2.0], [3.0], [0.0]]])
    >>> mask = keras.ops.array([[True, True, True, False]])
    >>> [float(step) for step in ReversedSequence()(inputs, mask=mask)[0, :, 0]]
    [3.0, 2.0, 1.0, 0.0]

    Reference:
        Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural Networks", 2014,
        section 3.3, https://arxiv.org/abs/1409.3215
    """

    def call(self, inputs: Any, mask: Any = None) -> Any:
        check_axes("inputs", inputs.shape, STEPS)
        if mask is None:
            return ops.flip(inputs, axis=1)
        mask = ops.cast(mask, "bool")
        real = ops.cast(mask, "int32")
        # `rank` is the number of real steps before each step, `count` the number of all real steps.
        rank = ops.cumsum(real, axis=1) - real
        count = ops.sum(real, axis=1, keepdims=True)
        steps = ops.arange(backend.shape(inputs)[1], dtype="int32")
        # The indices of the real steps in order, then the indices of padding.
        real_first = ops.argsort(ops.where(mask, steps, steps + backend.shape(inputs)[1]), axis=1)
        opposite = ops.where(mask, count - 1 - rank, 0)
        source = ops.take_along_axis(ops.cast(real_first, "int32"), opposite, axis=1)  # (B, S)
        zeroed = zero_padding(inputs, mask)
        return zero_padding(ops.take_along_axis(zeroed, source[..., None], axis=1), mask)
