"""Base of the LSTM cells."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.recurrent_cell import Activation, RecurrentCell


class LSTMBase(RecurrentCell):
    """Abstract cell with gates in the order i, f, c, o and the states h and c.

    `activation` applies to the candidate and to the carry, `recurrent_activation` to the gates.
    """

    num_gates = 4

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
        recurrent_activation: Activation = "sigmoid",
        unit_forget_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, **kwargs)
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.unit_forget_bias = unit_forget_bias

    @property
    def state_size(self) -> list[int]:
        return [self.units, self.units]

    def initial_bias(self, shape: Any, dtype: Any = None) -> Any:
        bias = super().initial_bias(shape, dtype)
        if not self.unit_forget_bias:
            return bias
        ones = ops.ones((self.units,), dtype=dtype)
        return ops.concatenate([bias[: self.units], ones, bias[2 * self.units :]])
