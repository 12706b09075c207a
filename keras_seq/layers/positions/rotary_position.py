"""Rotary positions."""

import math

import keras
from keras import ops

from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.shapes import reshape
from keras_seq.layers.positions.attention_position import AttentionPosition

# Shape letters: T steps, D features, K beam.


@keras.saving.register_keras_serializable(package="keras_seq")
class RotaryPosition(AttentionPosition):
    """Turns each pair of features by an angle that grows with the position.

        x'[p, 2i]     = x[p, 2i] cos(p w_i) - x[p, 2i + 1] sin(p w_i)
        x'[p, 2i + 1] = x[p, 2i] sin(p w_i) + x[p, 2i + 1] cos(p w_i)
        w_i           = 1 / 10000^(2i / D)

    The product of a query turned at p and a key turned at q depends on p - q
    and not on p: a score knows how far a key is away. As the `position` of
    `MultiHeadSelfAttention` the layer turns the queries and keys of each head,
    the keys before they go into the cache of a search. It has no weights.

    Angles and sines are computed in float32 under every dtype policy, products
    in float32 at least: in bfloat16 neighbouring positions beyond 256 would be one.

    Shapes: B batch, T steps, D features, an even number.

    Args:
        max_wavelength: Positive float, the 10000 of the formula.

    Call arguments:
        inputs: Float tensor `(B, ..., T, D)`; step t is at position t.

    Returns:
        Tensor of the shape of `inputs` in the compute dtype.

    Masks: the mask of `inputs` passes through; steps do not see one another.

    Raises:
        ValueError: At construction if `max_wavelength` is not positive; at
            build if D is unknown or odd, or `inputs` has no axis of steps.

    Example:

    >>> position = RotaryPosition()
    >>> turned = position(keras.ops.ones((1, 3, 2)))
    >>> [round(float(x), 3) for x in turned[0, 1]]  # cos 1 - sin 1, sin 1 + cos 1
    [-0.301, 1.382]

    Reference:
        Su et al., "RoFormer: Enhanced Transformer with Rotary Position
        Embedding", 2021, section 3.2.2, https://arxiv.org/abs/2104.09864
    """

    def __init__(self, max_wavelength=10000.0, **kwargs):
        super().__init__(**kwargs)
        if not max_wavelength > 0:
            raise ValueError(f"`max_wavelength` must be positive, received {max_wavelength!r}.")
        self.max_wavelength = max_wavelength

    def build(self, input_shape):
        if len(input_shape) < 3:
            raise ValueError(
                "`inputs` must have the axes (batch, ..., steps, features), "
                f"received the shape {tuple(input_shape)}: `step` is for one step alone."
            )
        features = input_shape[-1]
        if features is None or features % 2:
            raise ValueError(
                "`RotaryPosition` turns features in pairs and needs an even number of them, "
                f"received {features} in the shape {tuple(input_shape)}: "
                "choose another width, for an attention its `key_size`."
            )

    def call(self, inputs):
        return self.turn(inputs)

    def step(self, inputs, position):
        """Turns every vector as at one position.

        Args:
            inputs: Float tensor `(B, ..., K, D)`, one vector for each hypothesis.
            position: Integer scalar tensor.

        Returns:
            Tensor of the shape of `inputs` in the compute dtype.
        """
        return self.turn(inputs, position)

    def turn(self, tensor, position=None):
        if position is None:
            positions = ops.arange(ops.shape(tensor)[-2], dtype="float32")
        else:
            positions = ops.reshape(ops.cast(position, "float32"), (1,))
        half = tensor.shape[-1] // 2
        exponents = ops.arange(half, dtype="float32") * (-math.log(self.max_wavelength) / half)
        angles = positions[:, None] * ops.exp(exponents)[None]  # (T, D / 2)
        shape = ops.shape(tensor)
        pairs = reshape(at_least_float32(tensor), (*shape[:-1], half, 2))
        cosine, sine = (ops.cast(wave(angles), pairs.dtype) for wave in (ops.cos, ops.sin))
        even, odd = ops.unstack(pairs, 2, axis=-1)
        turned = ops.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1)
        return ops.cast(reshape(turned, shape), tensor.dtype)

    def get_config(self):
        return {**super().get_config(), "max_wavelength": self.max_wavelength}
