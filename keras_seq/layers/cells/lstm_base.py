"""What the cells with long short-term memory share."""

import keras
from keras import ops

from keras_seq.layers.cells.recurrent_cell import RecurrentCell


class LSTMBase(RecurrentCell):
    """Abstract cell with four gates i, f, c, o and the states h and c.

    Args:
        units: Positive integer U.
        activation: Of the candidate and of the carry.
        recurrent_activation: Of the gates.
        unit_forget_bias: Whether the forget gate's bias starts at 1.
        kwargs: Of `RecurrentCell`.
    """

    gates = 4

    def __init__(
        self,
        units,
        activation="tanh",
        recurrent_activation="sigmoid",
        unit_forget_bias=True,
        **kwargs,
    ):
        super().__init__(units, **kwargs)
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.unit_forget_bias = unit_forget_bias

    @property
    def state_size(self):
        return [self.units, self.units]

    @property
    def bias_start(self):
        if not self.unit_forget_bias:
            return self.bias_initializer

        def start(shape, dtype=None):
            bias = self.bias_initializer(shape, dtype=dtype)
            ones = ops.ones((self.units,), dtype=dtype)
            return ops.concatenate([bias[: self.units], ones, bias[2 * self.units :]])

        return start

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "recurrent_activation": keras.activations.serialize(self.recurrent_activation),
            "unit_forget_bias": self.unit_forget_bias,
        }
