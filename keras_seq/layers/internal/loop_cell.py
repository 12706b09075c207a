"""Recurrent cells inside a loop, with the product of their inputs outside it."""

import keras
from keras import ops

from keras_seq.layers.internal.shapes import add_bias, dense
from keras_seq.layers.internal.step_loop import LoopMatmul, read_once

# Shape letters: B batch, T steps, D input features, U units, G gate features.


def loop_cell(cell, features, summary_features=0, noise_shape=None):
    """The fastest form of a built Keras cell for use at every step of a loop.

    A cell of the loop reads [x; summary; fed]: x is known before the loop,
    `summary` is the same at all steps, `fed` comes out of the step before.
    Every form has `project`, for all x at once, and `step`. Either x or `fed`
    may be missing. Whatever is random is drawn while the form is made.

    A cell with a method `in_loop` of these arguments makes its form itself.

    Args:
        cell: A built cell, of any class that `keras.layers.RNN` accepts.
        features: Integer, how many of the cell's input features are x.
        summary_features: Integer, how many are `summary`; the rest is `fed`.
        noise_shape: `(B, T)` in training, None otherwise: nothing is dropped.

    Returns:
        An object with these two methods.
    """
    if hasattr(cell, "in_loop"):
        return cell.in_loop(features, summary_features, noise_shape)
    if type(cell) is keras.layers.StackedRNNCells:
        return _Stack(cell, features, summary_features, noise_shape)
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
    return GenericCell(cell, noise_shape)


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


def join(*parts):
    """The tensors among `parts` side by side, where some may be None; None of none."""
    present = [part for part in parts if part is not None]
    if len(present) < 2:
        return present[0] if present else None
    return ops.concatenate(present, axis=-1)


def add(left, right):
    """The sum, where either may be None."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


class PackedInputs:
    """Several tensors side by side, for a loop that slices one tensor by time.

    Args:
        parts: Tensors `(B, T, D)` of different D, or None.
    """

    def __init__(self, *parts):
        self.widths = [None if part is None else part.shape[-1] for part in parts]
        dtype = next((part.dtype for part in parts if part is not None), None)
        self.joined = join(
            *(None if part is None else ops.cast(part, dtype) for part in parts)
        )  # (B, T, ...)

    def split(self, joined):
        """The parts again, of one step: `(B, ...)` -> tensors `(B, D)` and None."""
        widths = [width for width in self.widths if width is not None]
        if len(widths) > 1:
            ends = [sum(widths[: place + 1]) for place in range(len(widths) - 1)]
            pieces = iter(ops.split(joined, ends, axis=-1))
        else:
            pieces = iter([joined])
        return [None if width is None else next(pieces) for width in self.widths]


class GenericCell:
    """A cell as it is: nothing is computed before the loop."""

    def __init__(self, cell, noise_shape=None):
        self.cell = cell
        if noise_shape and (getattr(cell, "dropout", 0) or getattr(cell, "recurrent_dropout", 0)):
            raise ValueError(
                f"The cell {cell.name!r} would draw its dropout inside the loop, which "
                "`keras_seq.layers.RNN` does before it: take a cell of keras_seq, with the dtype "
                "policy of the loop (`from_keras` makes one), or a `DropoutCell` around a cell "
                "without dropout."
            )
        takes_training = getattr(cell, "_call_has_training_arg", False)
        self.arguments = {"training": True} if noise_shape and takes_training else {}

    def project(self, inputs, summary=None):
        return None if inputs is None else join_summary(inputs, summary)

    def step(self, projected, fed, states):
        return self.cell(join(projected, fed), states, **self.arguments)


class _Stack:
    """Cells one on the other, of which the first alone reads what was known before the loop."""

    def __init__(self, cell, features, summary_features, noise_shape):
        first, *others = cell.cells
        self.forms = [
            loop_cell(first, features, summary_features, noise_shape),
            *(loop_cell(other, 0, 0, noise_shape) for other in others),
        ]

    def project(self, inputs, summary=None):
        first, *others = self.forms
        self.lanes = PackedInputs(
            first.project(inputs, summary), *(form.project(None) for form in others)
        )
        return self.lanes.joined

    def step(self, projected, fed, states):
        new_states = []
        if len(self.forms) == 1 and not isinstance(states[0], (list, tuple)):
            # `StackedRNNCells` gives the states of a single cell without the list around them.
            return self.forms[0].step(projected, fed, states)
        lanes = self.lanes.split(projected)
        for form, lane, own in zip(self.forms, lanes, states, strict=True):
            own = list(own) if isinstance(own, (list, tuple)) else [own]
            fed, own = form.step(lane, fed, own)
            new_states.append(own)
        return fed, new_states


class SplitKernel:
    """A cell's kernel, cut into the rows of x, of `summary` and of `fed`.

    Args:
        kernel: Variable `(D, G)`.
        features: Integer, as in `loop_cell`.
        summary_features: Integer, likewise.
    """

    def __init__(self, kernel, features, summary_features):
        known = features + summary_features
        kernel = read_once(kernel)
        self.has_fed = kernel.shape[0] > known
        self.known = kernel
        if kernel.shape[0] > features:
            # Not by slices: the gradient of each would be a whole kernel.
            self.known, self.summary, self.fed = ops.split(kernel, [features, known])

    def product(self, inputs, summary=None, bias=None):
        """The known part of the product, of all steps: `(B, T, G)`, or None without inputs."""
        if inputs is None:
            return None
        product = dense(inputs, self.known, bias)
        if summary is None:
            return product
        # Once for each source, and not once for each step.
        summary = ops.matmul(ops.cast(summary, inputs.dtype), self.summary)
        return product + ops.expand_dims(summary, 1)


class _KerasCell:
    """What the forms of Keras' own cells have in common."""

    def __init__(self, cell, features, summary_features):
        self.cell = cell
        self.kernel = SplitKernel(cell.kernel, features, summary_features)
        self.bias = None if cell.bias is None else read_once(cell.bias)

    def project(self, inputs, summary=None):
        return self.kernel.product(inputs, summary, self.input_bias())

    def input_bias(self):
        return self.bias


class _FusedCell(_KerasCell):
    """LSTM and simple RNN: one product of [fed; h] at each step."""

    def __init__(self, cell, features, summary_features):
        super().__init__(cell, features, summary_features)
        matrix = cell.recurrent_kernel
        if self.kernel.has_fed:
            matrix = ops.concatenate([self.kernel.fed, matrix], axis=0)
        self.inner = LoopMatmul(matrix)

    def gates(self, projected, fed, hidden):
        if projected is None:
            projected = self.bias
        return add(projected, self.inner(join(fed, hidden)))


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


class _GRU(_KerasCell):
    """GRU with the reset gate after the product: h and `fed` meet behind it."""

    def __init__(self, cell, features, summary_features):
        super().__init__(cell, features, summary_features)
        if self.kernel.has_fed:
            self.fed_matrix = LoopMatmul(self.kernel.fed)
        self.recurrent_matrix = LoopMatmul(cell.recurrent_kernel)
        self.inner_bias = None if self.bias is None else self.bias[1]

    def input_bias(self):
        return None if self.bias is None else self.bias[0]

    def step(self, projected, fed, states):
        (hidden,) = states
        if projected is None:
            projected = self.input_bias()
        if fed is not None:
            projected = add(projected, self.fed_matrix(fed))
        inner = self.recurrent_matrix(hidden)
        if self.inner_bias is not None:
            inner = add_bias(inner, self.inner_bias)
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
