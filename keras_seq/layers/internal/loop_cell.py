"""Adapters that run a recurrent cell in a loop and project its inputs before the loop."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.shapes import add_bias, dense
from keras_seq.layers.internal.step_loop import LoopMatmul, read_once

# Shape letters: B batch, T steps, D input features, U units, G gate features.


def loop_cell(
    cell: keras.layers.Layer, features: int, summary_features: int = 0, noise_shape: Any = None
) -> Any:
    """Returns the fastest adapter that runs a built cell at all steps of a loop.

    The inputs of the cell are [x; summary; feedback]. x, of width `features`, is known before the
    loop, `summary` is the same at all steps, and `feedback` comes from the previous step. Either x
    or `feedback` may be missing. The adapter has two methods:

        projected = adapter.project(x, summary)                      before the loop, for all steps
        output, states = adapter.step(projected_t, feedback, states) in the loop

    All random numbers are drawn when the adapter is created. `noise_shape` is `(B, T)` in training;
    None disables dropout. A cell can provide its own adapter by a method `in_loop` with
    these arguments.
    """
    if hasattr(cell, "in_loop"):
        return cell.in_loop(features, summary_features, noise_shape)
    if type(cell) is keras.layers.StackedRNNCells:
        return _StackInLoop(cell, features, summary_features, noise_shape)
    for cell_class, form in _FORMS.items():
        # Match the class exactly, because a subclass may compute something else. Dropout and a
        # reset gate before the product rule out projecting the inputs before the loop.
        if (
            type(cell) is cell_class
            and not cell.dropout
            and not cell.recurrent_dropout
            and getattr(cell, "reset_after", True)
        ):
            return form(cell, features, summary_features)
    return GenericCell(cell, noise_shape)


def join_summary(inputs: Any, summary: Any) -> Any:
    """Appends a summary `(B, D_s)` to inputs `(B, ..., D)`; returns `(B, ..., D + D_s)`."""
    if summary is None:
        return inputs
    leading = backend.shape(inputs)[:-1]
    summary = ops.cast(summary, inputs.dtype)
    if len(leading) == 2:
        summary = ops.expand_dims(summary, 1)
    summary = ops.broadcast_to(summary, (*leading, summary.shape[-1]))
    return ops.concatenate([inputs, summary], axis=-1)


def join(*parts: Any) -> Any:
    """Concatenates the features of tensors, skipping None. Returns None if all are None."""
    present = [part for part in parts if part is not None]
    if len(present) < 2:
        return present[0] if present else None
    return ops.concatenate(present, axis=-1)


def add(left: Any, right: Any) -> Any:
    """Returns the sum of two tensors, either of which may be None."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


class PackedInputs:
    """Packs tensors `(B, T, D)` of any D, or None, into one tensor that a loop slices by time."""

    def __init__(self, *parts: Any) -> None:
        self.widths = [None if part is None else part.shape[-1] for part in parts]
        present = [part for part in parts if part is not None]
        self.joined = join(*(ops.cast(part, present[0].dtype) for part in present))  # (B, T, ...)

    def split(self, joined: Any) -> list[Any]:
        """Unpacks one step `(B, ...)` into a tensor `(B, D)` for each packed tensor, else None."""
        widths = [width for width in self.widths if width is not None]
        if len(widths) > 1:
            ends = [sum(widths[:count]) for count in range(1, len(widths))]
            pieces = iter(ops.split(joined, ends, axis=-1))
        else:
            pieces = iter([joined])
        return [None if width is None else next(pieces) for width in self.widths]


class GenericCell:
    """Loop adapter of an arbitrary cell. It computes nothing before the loop."""

    def __init__(self, cell: Any, noise_shape: Any = None) -> None:
        self.cell = cell
        if noise_shape and (getattr(cell, "dropout", 0) or getattr(cell, "recurrent_dropout", 0)):
            raise ValueError(
                f"The cell {cell.name!r} would draw its dropout inside the loop, but "
                "`keras_seq.layers.RNN` draws it before the loop: use a cell of keras_seq with the "
                "dtype policy of the loop (`from_keras` converts one), or a `DropoutCell` around "
                "a cell without dropout."
            )
        takes_training = getattr(cell, "_call_has_training_arg", False)
        self.arguments = {"training": True} if noise_shape and takes_training else {}

    def project(self, inputs: Any, summary: Any = None) -> Any:
        return None if inputs is None else join_summary(inputs, summary)

    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        return self.cell(join(projected, feedback), states, **self.arguments)


class _StackInLoop:
    """Loop adapter of stacked cells. Only the first cell projects its inputs before the loop."""

    def __init__(self, cell: Any, features: int, summary_features: int, noise_shape: Any) -> None:
        first, *others = cell.cells
        self.forms = [
            loop_cell(first, features, summary_features, noise_shape),
            *(loop_cell(other, 0, 0, noise_shape) for other in others),
        ]

    def project(self, inputs: Any, summary: Any = None) -> Any:
        first, *others = self.forms
        self.packed = PackedInputs(
            first.project(inputs, summary), *(form.project(None) for form in others)
        )
        return self.packed.joined

    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        if len(self.forms) == 1 and not isinstance(states[0], (list, tuple)):
            # `StackedRNNCells` does not nest the states of a single cell.
            return self.forms[0].step(projected, feedback, states)
        output, new_states = feedback, []
        parts = self.packed.split(projected)
        for form, part, cell_states in zip(self.forms, parts, states, strict=True):
            nested = isinstance(cell_states, (list, tuple))
            cell_states = list(cell_states) if nested else [cell_states]
            output, cell_states = form.step(part, output, cell_states)
            new_states.append(cell_states)
        return output, new_states


class SplitKernel:
    """A cell's kernel, split into the rows of x, `summary` and `feedback`; see `loop_cell`."""

    def __init__(self, kernel: Any, features: int, summary_features: int) -> None:
        known = features + summary_features
        kernel = read_once(kernel)
        self.has_feedback = kernel.shape[0] > known
        self.known = kernel
        if kernel.shape[0] > features:
            # Not with slices, because the gradient of each slice would be as large as the kernel.
            self.known, self.summary, self.feedback = ops.split(kernel, [features, known])

    def product(self, inputs: Any, summary: Any = None, bias: Any = None) -> Any:
        """Returns the projected inputs `(B, T, G)`, or None if `inputs` is None."""
        if inputs is None:
            return None
        product = dense(inputs, self.known, bias)
        if summary is None:
            return product
        # Projects the summary once per row, not at every step.
        summary = ops.matmul(ops.cast(summary, inputs.dtype), self.summary)
        return product + ops.expand_dims(summary, 1)


class _KerasCellInLoop:
    """Base class of the loop adapters of Keras cells."""

    def __init__(self, cell: Any, features: int, summary_features: int) -> None:
        self.cell = cell
        self.kernel = SplitKernel(cell.kernel, features, summary_features)
        self.bias = None if cell.bias is None else read_once(cell.bias)

    def project(self, inputs: Any, summary: Any = None) -> Any:
        return self.kernel.product(inputs, summary, self.input_bias())

    def input_bias(self) -> Any:
        return self.bias


class _FusedCellInLoop(_KerasCellInLoop):
    """Base class for LSTM and simple RNN: one product of [feedback; h] per step."""

    def __init__(self, cell: Any, features: int, summary_features: int) -> None:
        super().__init__(cell, features, summary_features)
        matrix = cell.recurrent_kernel
        if self.kernel.has_feedback:
            matrix = ops.concatenate([self.kernel.feedback, matrix], axis=0)
        self.inner = LoopMatmul(matrix)

    def gates(self, projected: Any, feedback: Any, hidden: Any) -> Any:
        if projected is None:
            projected = self.bias
        return add(projected, self.inner(join(feedback, hidden)))


class _LSTMInLoop(_FusedCellInLoop):
    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        hidden, carry = states
        gates = self.gates(projected, feedback, hidden)
        # A split is better than slices, because its gradient is a single concatenation.
        update, forget, candidate, output = ops.split(gates, 4, axis=-1)
        sigmoid, tanh = self.cell.recurrent_activation, self.cell.activation
        carry = sigmoid(forget) * carry + sigmoid(update) * tanh(candidate)
        hidden = sigmoid(output) * tanh(carry)
        return hidden, [hidden, carry]


class _SimpleRNNInLoop(_FusedCellInLoop):
    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        (hidden,) = states
        hidden = self.cell.activation(self.gates(projected, feedback, hidden))
        return hidden, [hidden]


class _GRUInLoop(_KerasCellInLoop):
    """GRU that resets after the product, so h and `feedback` need separate products."""

    def __init__(self, cell: Any, features: int, summary_features: int) -> None:
        super().__init__(cell, features, summary_features)
        if self.kernel.has_feedback:
            self.feedback_matmul = LoopMatmul(self.kernel.feedback)
        self.recurrent_matmul = LoopMatmul(cell.recurrent_kernel)
        self.inner_bias = None if self.bias is None else self.bias[1]

    def input_bias(self) -> Any:
        return None if self.bias is None else self.bias[0]

    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        (hidden,) = states
        if projected is None:
            projected = self.input_bias()
        if feedback is not None:
            projected = add(projected, self.feedback_matmul(feedback))
        inner = self.recurrent_matmul(hidden)
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
    keras.layers.LSTMCell: _LSTMInLoop,
    keras.layers.GRUCell: _GRUInLoop,
    keras.layers.SimpleRNNCell: _SimpleRNNInLoop,
}
