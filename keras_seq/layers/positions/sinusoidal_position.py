"""Sinusoidal position encoding."""

import math
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import STEPS, check_above_zero, known_features
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.precision import at_least_float32


@keras.saving.register_keras_serializable(package="keras_seq")
class SinusoidalPosition(ConfiguredLayer):
    """Adds a fixed sinusoidal encoding of the position to each step.

        PE(p, 2i)     = sin(p / 10000^(2i / D))
        PE(p, 2i + 1) = cos(p / 10000^(2i / D))

    The layer has no weights and no largest position. Angles and sines are computed in float32 under
    every dtype policy, and the sum in float32 or float64: bfloat16, with 8 significant bits, rounds
    neighboring positions beyond 256 to one number.

    Shapes: B batch, T steps, D features.

    Args:
        max_wavelength: Positive float, the 10000 of the formula.

    Call arguments:
        inputs: Float tensor `(B, T, D)`; step t is at position t.

    Returns:
        Tensor `(B, T, D)` in the compute dtype.

    Masks: the mask of `inputs` passes through.

    Raises:
        ValueError: If `max_wavelength` is not positive or D is unknown.

    Example:

    >>> position = SinusoidalPosition()
    >>> encoded = position(keras.ops.zeros((1, 3, 4)))
    >>> [round(float(x), 3) for x in encoded[0, 1]]
    [0.841, 0.54, 0.01, 1.0]

    Reference:
        Vaswani et al., 2017, section 3.5, https://arxiv.org/abs/1706.03762
    """

    def __init__(self, max_wavelength: float = 10000.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_above_zero(max_wavelength=max_wavelength)
        self.max_wavelength = max_wavelength

    def build(self, input_shape: Any) -> None:
        known_features("inputs", input_shape, STEPS)

    def call(self, inputs: Any) -> Any:
        positions = ops.arange(backend.shape(inputs)[1], dtype="float32")
        return self._add(inputs, self._encode(positions[:, None], inputs.shape[-1]))

    def step(self, inputs: Any, position: Any) -> Any:
        """Adds the encoding of one position, a scalar, to the vectors `(B, K, D)` of hypotheses."""
        return self._add(inputs, self._encode(ops.cast(position, "float32"), inputs.shape[-1]))

    def _add(self, inputs: Any, encoding: Any) -> Any:
        return ops.cast(ops.add(at_least_float32(inputs), encoding), self.compute_dtype)

    def _encode(self, positions: Any, features: int) -> Any:
        """Returns encodings `(T, D)` of positions `(T, 1)`, or `(1, D)` of a scalar position."""
        half = (features + 1) // 2
        exponents = ops.arange(half, dtype="float32") * (-2.0 * math.log(self.max_wavelength))
        angles = positions * ops.exp(exponents / features)  # (T, D / 2)
        pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # (T, D / 2, 2)
        encoding = ops.reshape(pairs, (-1, 2 * half))
        return encoding[:, :features] if features % 2 else encoding
