"""Recurrent cells inside a loop, with the product of their inputs outside it."""

import keras
from keras import ops

from keras_seq.layers.step_loop import StepMatrix

# Shape letters: B batch, T steps, D input features, F fed features, U units, G gate features.


def cell_in_loop(cell, features):
    """The fastest form of a built Keras cell for use at every step of a loop.

    A cell of the loop reads [x; fed]: x is known before the loop and `fed`
    comes out of the step before. Every form has `project`, for all x at once,
    and `step`.

    Args:
        cell: A built cell, of any class that `keras.layers.RNN` accepts.
        features: Integer, how many of the cell's input features are known
            before the loop; the rest is `fed`.

    Returns:
        An object with these two methods.
    """
    for cell_class, form in _FORMS.items():
        # A subclass may compute something else; dropout and a reset gate
        # before the product do not split into the two parts.
        if (
            type(cell) is cell_class
            and not cell.dropout
            and not cell.recurrent_dropout
            and getattr(cell, "reset_after", True)
        ):
            return form(cell, features)
    return _AnyCell(cell)


class _AnyCell:
    """A cell as it is: nothing is known before the loop."""

    def __init__(self, cell):
        self.cell = cell

    def project(self, inputs):
        return inputs

    def step(self, projected, fed, states):
        inputs = projected if fed is None else ops.concatenate([projected, fed], axis=-1)
        return self.cell(inputs, states)


class _FusedCell:
    """LSTM and simple RNN: one product of [fed; h] at each step."""

    def __init__(self, cell, features):
        self.cell = cell
        self.kernel = cell.kernel[:features]
        self.inner = StepMatrix(
            ops.concatenate([cell.kernel[features:], cell.recurrent_kernel], axis=0)
        )

    def project(self, inputs):
        projected = ops.matmul(inputs, self.kernel)  # (B, T, G)
        return projected if self.cell.bias is None else projected + self.cell.bias

    def gates(self, projected, fed, hidden):
        inner = hidden if fed is None else ops.concatenate([fed, hidden], axis=-1)
        return projected + self.inner(inner)


class _LSTM(_FusedCell):
    def step(self, projected, fed, states):
        hidden, carry = states
        gates = self.gates(projected, fed, hidden)
        # Not by slices: the gradient of a split is one concatenation.
        update, forget, candidate, output = ops.split(gates, 4, axis=-1)
        sigmoid, tanh = self.cell.recurrent_activation, self.cell.activation
        carry = sigmoid(forget) * carry + sigmoid(update) * tanh(candidate)
        hidden = sigmoid(output) * tanh(carry)
        return hidden, [hidden, carry]


class _Simple(_FusedCell):
    def step(self, projected, fed, states):
        (hidden,) = states
        hidden = self.cell.activation(self.gates(projected, fed, hidden))
        return hidden, [hidden]


class _GRU:
    """GRU with the reset gate after the product: h and `fed` meet behind it."""

    def __init__(self, cell, features):
        self.cell = cell
        self.kernel = cell.kernel[:features]
        self.fed_kernel = StepMatrix(cell.kernel[features:])
        self.recurrent_kernel = StepMatrix(cell.recurrent_kernel)

    def project(self, inputs):
        projected = ops.matmul(inputs, self.kernel)  # (B, T, G)
        return projected if self.cell.bias is None else projected + self.cell.bias[0]

    def step(self, projected, fed, states):
        (hidden,) = states
        if fed is not None:
            projected = projected + self.fed_kernel(fed)
        inner = self.recurrent_kernel(hidden)
        if self.cell.bias is not None:
            inner = inner + self.cell.bias[1]
        x_update, x_reset, x_candidate = ops.split(projected, 3, axis=-1)
        h_update, h_reset, h_candidate = ops.split(inner, 3, axis=-1)
        update = self.cell.recurrent_activation(x_update + h_update)
        reset = self.cell.recurrent_activation(x_reset + h_reset)
        candidate = self.cell.activation(x_candidate + reset * h_candidate)
        hidden = update * hidden + (1 - update) * candidate
        return hidden, [hidden]


_FORMS = {
    keras.layers.LSTMCell: _LSTM,
    keras.layers.GRUCell: _GRU,
    keras.layers.SimpleRNNCell: _Simple,
}
