"""Recurrent cells inside a loop, with the product of their inputs outside it."""

import keras
from keras import ops

from keras_seq.layers.step_loop import StepMatrix

# Shape letters: B batch, T steps, D input features, U units, G gate features.


def cell_in_loop(cell, features, summary_features=0):
    """The fastest form of a built Keras cell for use at every step of a loop.

    A cell of the loop reads [x; summary; fed]: x is known before the loop,
    `summary` is the same at all steps, `fed` comes out of the step before.
    Every form has `project`, for all x at once, and `step`.

    Args:
        cell: A built cell, of any class that `keras.layers.RNN` accepts.
        features: Integer, how many of the cell's input features are x.
        summary_features: Integer, how many are `summary`; the rest is `fed`.

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
            return form(cell, features, summary_features)
    return _AnyCell(cell)


def join_summary(inputs, summary):
    """[x; summary] at every place of `inputs`: `(B, ..., D)`, `(B, D_s)` -> `(B, ..., D + D_s)`."""
    if summary is None:
        return inputs
    places = ops.shape(inputs)[:-1]
    summary = ops.cast(summary, inputs.dtype)
    if len(places) == 2:
        summary = ops.expand_dims(summary, 1)
    summary = ops.broadcast_to(summary, (*places, summary.shape[-1]))
    return ops.concatenate([inputs, summary], axis=-1)


class _AnyCell:
    """A cell as it is: nothing is computed before the loop."""

    def __init__(self, cell):
        self.cell = cell

    def project(self, inputs, summary=None):
        return join_summary(inputs, summary)

    def step(self, projected, fed, states):
        inputs = projected if fed is None else ops.concatenate([projected, fed], axis=-1)
        return self.cell(inputs, states)


class _SplitCell:
    """A cell whose kernel is cut into the rows of x, of `summary` and of `fed`."""

    def __init__(self, cell, features, summary_features):
        self.cell = cell
        known = features + summary_features
        self.kernel = cell.kernel[:features]
        self.summary_kernel = cell.kernel[features:known]
        self.fed_kernel = cell.kernel[known:]

    def project(self, inputs, summary=None):
        projected = ops.matmul(inputs, self.kernel)  # (B, T, G)
        if self.cell.bias is not None:
            projected = projected + self.input_bias()
        if summary is None:
            return projected
        # Once for each source, and not once for each step.
        summary = ops.matmul(ops.cast(summary, inputs.dtype), self.summary_kernel)
        return projected + ops.expand_dims(summary, 1)

    def input_bias(self):
        return self.cell.bias


class _FusedCell(_SplitCell):
    """LSTM and simple RNN: one product of [fed; h] at each step."""

    def __init__(self, cell, features, summary_features):
        super().__init__(cell, features, summary_features)
        self.inner = StepMatrix(ops.concatenate([self.fed_kernel, cell.recurrent_kernel], axis=0))

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


class _GRU(_SplitCell):
    """GRU with the reset gate after the product: h and `fed` meet behind it."""

    def __init__(self, cell, features, summary_features):
        super().__init__(cell, features, summary_features)
        self.fed_matrix = StepMatrix(self.fed_kernel)
        self.recurrent_matrix = StepMatrix(cell.recurrent_kernel)

    def input_bias(self):
        return self.cell.bias[0]

    def step(self, projected, fed, states):
        (hidden,) = states
        if fed is not None:
            projected = projected + self.fed_matrix(fed)
        inner = self.recurrent_matrix(hidden)
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
