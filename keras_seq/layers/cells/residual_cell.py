"""Residual connection around a cell."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.cell_wrapper import CellWrapper
from keras_seq.layers.internal.loop_cell import PackedInputs, join, join_summary


@keras.saving.register_keras_serializable(package="keras_seq")
class ResidualCell(CellWrapper):
    """Residual connection around a cell: adds the input to the output.

        y, s' = cell(x, s);  output = x + y

    Residual connections make deep stacks of cells trainable. `stacked(cells, residual=True)`
    applies this wrapper to all cells but the first.

    Args:
        cell: A recurrent cell whose output is as wide as its input.

    Call arguments and outputs are those of `cell`.

    Raises:
        ValueError: If `cell` is not a cell; at build if its output is not as wide as its input.

    Example:

    >>> outputs = RNN(ResidualCell(GRUCell(3)))(keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape)
    (2, 3)

    Reference:
        Wu et al., "Google's Neural Machine Translation System", 2016, section 3.1,
        https://arxiv.org/abs/1609.08144
    """

    def build(self, input_shape: Any) -> None:
        if input_shape[-1] != self.output_size:
            raise ValueError(
                "The input of a ResidualCell must be as wide as the output of its cell, received "
                f"inputs of shape {tuple(input_shape)} and a cell of {self.output_size} output "
                "features: give the cell as many units, or project the inputs before."
            )
        super().build(input_shape)

    def call(self, inputs: Any, states: Any, training: bool | None = None) -> tuple[Any, Any]:
        output, states = self.cell(inputs, states, training=training)
        return inputs + output, states

    def in_loop(self, features: int, summary_features: int = 0, noise_shape: Any = None) -> Any:
        return _ResidualInLoop(super().in_loop(features, summary_features, noise_shape))


class _ResidualInLoop:
    """Runs a `ResidualCell` in a loop whose steps get slices of the inputs and their projection."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def project(self, inputs: Any, summary: Any = None) -> Any:
        known = None if inputs is None else join_summary(inputs, summary)
        self.packed = PackedInputs(self.inner.project(inputs, summary), known)
        return self.packed.joined

    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        projected, known = self.packed.split(projected)
        output, states = self.inner.step(projected, feedback, states)
        inputs = join(known, feedback)
        return ops.cast(inputs, output.dtype) + output, states
