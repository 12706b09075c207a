"""Dropout that draws fewer random bits on TensorFlow."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.custom_gradient import custom_gradient


@keras.saving.register_keras_serializable(package="keras_seq")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout` with 16 instead of 32 random bits per number.

        y = x * keep / (1 - rate)

    On a CPU random numbers are most of the cost of dropout. The layer rounds the rate to a multiple
    of 2 ** -16 and scales by the rounded rate. On other backends it equals Keras' layer. Arguments
    and shapes are those of that layer, without `noise_shape`.

    Example:

    >>> tuple(Dropout(0.5)(keras.ops.ones((2, 3)), training=True).shape)
    (2, 3)
    """

    def call(self, inputs: Any, training: bool | None = False) -> Any:
        if keras.backend.backend() != "tensorflow" or not training or self.rate == 0:
            return super().call(inputs, training=training)
        mask, scale = self._draw(inputs)
        return inputs * (mask * scale)

    def relu_dropout(self, inputs: Any) -> Any:
        """Computes `self(relu(inputs), training=True)` in less memory.

        The gradient flows where the output is above 0, so neither the mask nor the output of relu
        is stored.
        """
        if keras.backend.backend() != "tensorflow" or self.rate == 0:
            return self(ops.relu(inputs), training=True)
        mask, scale = self._draw(inputs)

        @custom_gradient
        def dropped(inputs: Any) -> Any:
            outputs = ops.relu(inputs) * (mask * scale)

            def gradient(upstream: Any) -> Any:
                return ops.where(outputs > 0, upstream * scale, 0)

            return outputs, gradient

        return dropped(inputs)

    def _draw(self, inputs: Any) -> tuple[Any, float]:
        """Returns a mask, 1 to keep a number and 0 to drop it, and the scale of kept numbers."""
        dropped = min(round(self.rate * 2**16), 2**16 - 1)
        bits = backend.random_uint16(inputs, self.seed_generator)
        mask = ops.cast(ops.greater_equal(bits, ops.cast(dropped, "uint16")), inputs.dtype)
        return mask, 2**16 / (2**16 - dropped)
