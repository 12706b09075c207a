"""Dropout that draws fewer random bits on TensorFlow."""

import keras
from keras import ops

from keras_seq.layers.internal.custom_gradient import custom_gradient


@keras.saving.register_keras_serializable(package="keras_seq")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout` with 16 random bits for a number, in place of 32.

        y = x * keep / (1 - rate)

    On a CPU random numbers are most of what dropout costs. The rate is rounded
    to a multiple of 2 ** -16, and what is kept is scaled by just that. Gradients
    go by one product with the same mask. On other backends than TensorFlow this
    is Keras' layer.

    Arguments and shapes are those of `keras.layers.Dropout`, without
    `noise_shape`. Its seed goes on as there.

    Example:

    >>> tuple(Dropout(0.5)(keras.ops.ones((2, 3)), training=True).shape)
    (2, 3)
    """

    def call(self, inputs, training=False):
        if keras.backend.backend() != "tensorflow" or not training or self.rate == 0:
            return super().call(inputs, training=training)
        mask, scale = self._draw(inputs)
        return inputs * (mask * scale)

    def relu_dropout(self, inputs):
        """`self(relu(inputs), training=True)` in less memory.

        What comes out says by itself where the gradient goes, to what is above zero, so
        neither the mask nor what relu gave is kept for it.

        Args:
            inputs: Float tensor.
        """
        if keras.backend.backend() != "tensorflow" or self.rate == 0:
            return self(ops.relu(inputs), training=True)
        mask, scale = self._draw(inputs)

        @custom_gradient
        def dropped(inputs):
            outputs = ops.relu(inputs) * (mask * scale)

            def gradient(upstream):
                return ops.where(outputs > 0, upstream * scale, 0)

            return outputs, gradient

        return dropped(inputs)

    def _draw(self, inputs):
        """1 where a number is kept and 0 where it is dropped, and the scale of what is kept."""
        dropped = min(round(self.rate * 2**16), 2**16 - 1)
        bits = _random_uint16(inputs, self.seed_generator)
        mask = ops.cast(ops.greater_equal(bits, ops.cast(dropped, "uint16")), inputs.dtype)
        return mask, 2**16 / (2**16 - dropped)


def _random_uint16(like, seed):
    """Random numbers, four from each of those of 64 bits that are drawn."""
    size = ops.size(like)
    drawn = keras.random.randint(
        ((size + 3) // 4, 1), -(2**63), 2**63 - 1, dtype="int64", seed=seed
    )
    return ops.reshape(ops.reshape(ops.view(drawn, "uint16"), (-1,))[:size], ops.shape(like))
