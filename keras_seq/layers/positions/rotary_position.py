"""Rotary positions."""

import math
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import check_above_zero
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.shapes import reshape
from keras_seq.layers.positions.attention_position import AttentionPosition


@keras.saving.register_keras_serializable(package="keras_seq")
class RotaryPosition(AttentionPosition):
    """Rotates each pair of features by an angle that grows with the position (RoPE).

        x'[p, 2i]     = x[p, 2i] cos(p w_i) - x[p, 2i + 1] sin(p w_i)
        x'[p, 2i + 1] = x[p, 2i] sin(p w_i) + x[p, 2i + 1] cos(p w_i)
        w_i           = 1 / 10000^(2i / D)

    Use it as the `position` of `MultiHeadSelfAttention`, which rotates the queries and keys of each
    head. The product of a query at p and a key at q then depends on the distance p - q alone. The
    cache of a search holds rotated keys. The layer has no weights and computes in float32 or more,
    as `SinusoidalPosition` does.

    Shapes: B batch, T steps, D features, an even number.

    Args:
        max_wavelength: Positive float, the 10000 of the formula.

    Call arguments:
        inputs: Float tensor `(B, ..., T, D)`; step t is at position t.

    Returns:
        Tensor of the shape of `inputs` in the compute dtype.

    Masks: the mask of `inputs` passes through, and steps do not affect each other.

    Raises:
        ValueError: At construction if `max_wavelength` is not positive. At build if D is unknown
            or odd, or `inputs` has no axis of steps.

    Example:

    >>> position = RotaryPosition()
    >>> rotated = position(keras.ops.ones((1, 3, 2)))
    >>> [round(float(x), 3) for x in rotated[0, 1]]  # cos 1 - sin 1, sin 1 + cos 1
    [-0.301, 1.382]

    Reference:
        Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, section
        3.2.2, https://arxiv.org/abs/2104.09864
    """

    def __init__(self, max_wavelength: float = 10000.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_above_zero(max_wavelength=max_wavelength)
        self.max_wavelength = max_wavelength

    def build(self, input_shape: Any) -> None:
        if len(input_shape) < 3:
            raise ValueError(
                "`inputs` must have the axes (batch, ..., steps, features), "
                f"received the shape {tuple(input_shape)}: use `step` for a single step."
            )
        features = input_shape[-1]
        if features is None or features % 2:
            raise ValueError(
                "`RotaryPosition` rotates pairs of features and needs an even number of them, "
                f"received {features} in the shape {tuple(input_shape)}: "
                "choose another width, for an attention its `key_size`."
            )

    def call(self, inputs: Any) -> Any:
        return self.rotate(inputs)

    def step(self, inputs: Any, position: Any) -> Any:
        """Rotates vectors `(B, ..., K, D)` of K hypotheses, all at one position, a scalar."""
        return self.rotate(inputs, position)

    def rotate(self, tensor: Any, position: Any = None) -> Any:
        shape, half = backend.shape(tensor), tensor.shape[-1] // 2
        if position is None:
            positions = ops.arange(shape[-2], dtype="float32")
        else:
            positions = ops.reshape(ops.cast(position, "float32"), (1,))
        exponents = ops.arange(half, dtype="float32") * (-math.log(self.max_wavelength) / half)
        angles = positions[:, None] * ops.exp(exponents)[None]  # (T, D / 2)
        pairs = reshape(at_least_float32(tensor), (*shape[:-1], half, 2))
        cosine, sine = (ops.cast(wave(angles), pairs.dtype) for wave in (ops.cos, ops.sin))
        even, odd = ops.unstack(pairs, 2, axis=-1)
        rotated = ops.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1)
        return ops.cast(reshape(rotated, shape), tensor.dtype)
