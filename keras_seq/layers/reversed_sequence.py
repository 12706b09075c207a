"""A sequence from its end to its begin, its padding left where it is."""

import keras
from keras import ops

from keras_seq.layers.internal.scaled_dot_product import zero_padding

# Shape letters: B batch, S steps, D features.


@keras.saving.register_keras_serializable(package="keras_seq")
class ReversedSequence(keras.layers.Layer):
    """The real steps of a sequence in reverse; what is padding stays where it is.

        y[b, r_k] = x[b, r_(n+1-k)]     r_1 ... r_n the places of the real steps of b

    Before an encoder that reads in one direction it brings the begin of the source near to
    the begin of the target. Reversing the whole axis would put the padding first.

    Shapes: B batch, S steps, D features.

    Call arguments:
        inputs: Float tensor `(B, S, D)`.
        mask: Optional bool tensor `(B, S)`, True where a step is real. Filled in
            by Keras from `inputs` when not given; without any all steps are real.

    Returns:
        Tensor `(B, S, D)` in the compute dtype, 0 where a step is padding.

    Masks: passed on as it came. What a masked step holds, NaN included, reaches neither the
    outputs nor the gradients.

    Raises:
        ValueError: At a call if the inputs are not of shape `(B, S, D)`.

    Example:

    >>> inputs = keras.ops.array([[[1.0], [2.0], [3.0], [0.0]]])
    >>> mask = keras.ops.array([[True, True, True, False]])
    >>> [float(step) for step in ReversedSequence()(inputs, mask=mask)[0, :, 0]]
    [3.0, 2.0, 1.0, 0.0]

    Reference:
        Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural
        Networks", 2014, section 3.3, https://arxiv.org/abs/1409.3215
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        if len(inputs.shape) != 3:
            raise ValueError(
                "The inputs must be of shape (batch, steps, features), "
                f"received {tuple(inputs.shape)}."
            )
        if mask is None:
            return ops.flip(inputs, axis=1)
        mask = ops.cast(mask, "bool")
        real = ops.cast(mask, "int32")
        # How many real steps stand before each, and how many there are.
        rank = ops.cumsum(real, axis=1) - real
        count = ops.sum(real, axis=1, keepdims=True)
        steps = ops.arange(ops.shape(inputs)[1], dtype="int32")
        # Real places first, in their order.
        places = ops.argsort(ops.where(mask, steps, steps + ops.shape(inputs)[1]), axis=1)
        opposite = ops.where(mask, count - 1 - rank, 0)
        taken = ops.take_along_axis(ops.cast(places, "int32"), opposite, axis=1)  # (B, S)
        zeroed = zero_padding(inputs, mask)
        return zero_padding(ops.take_along_axis(zeroed, taken[..., None], axis=1), mask)
