"""A cell with a residual connection around it."""

import keras
from keras import ops

from keras_seq.layers.cells.cell_wrapper import CellWrapper
from keras_seq.layers.internal.loop_cell import PackedInputs, join, join_summary

# Shape letters: B batch, D features.


@keras.saving.register_keras_serializable(package="keras_seq")
class ResidualCell(CellWrapper):
    """Adds a cell's input to its output (Wu et al., 2016).

        y, s' = cell(x, s)
        output = x + y

    The states are the cell's own. Keras' cells have no such wrapper. `stacked`
    puts it around the cells of a stack from the second on.

    Shapes: B batch, D features.

    Args:
        cell: A recurrent cell whose output is as wide as its input.

    Call arguments:
        inputs: Float tensor `(B, D)`.
        states: List of the cell's states.
        training: Handed on to the cell.

    Returns:
        output: Tensor `(B, D)` in the compute dtype.
        states: List of the cell's new states.

    Masks: a step has none; `keras_seq.layers.RNN` steps over what is masked.

    Raises:
        ValueError: If `cell` is no cell; at build if its output is not as wide
            as its input.

    Example:

    >>> outputs = RNN(ResidualCell(GRUCell(3)))(keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape)
    (2, 3)

    Reference:
        Wu et al., "Google's Neural Machine Translation System", 2016, section
        3.1, https://arxiv.org/abs/1609.08144
    """

    def build(self, input_shape):
        if input_shape[-1] != self.output_size:
            raise ValueError(
                "The input of a ResidualCell must be as wide as the output of its cell, received "
                f"inputs of shape {tuple(input_shape)} and a cell of {self.output_size} output "
                "features: give the cell as many units, or project the inputs before."
            )
        super().build(input_shape)

    def call(self, inputs, states, training=None):
        output, states = self.cell(inputs, states, training=training)
        return inputs + output, states

    def in_loop(self, features, summary_features=0, noise_shape=None):
        return _ResidualInLoop(super().in_loop(features, summary_features, noise_shape))


class _ResidualInLoop:
    """A `ResidualCell` for every step of a loop: its inputs ride beside their product."""

    def __init__(self, inner):
        self.inner = inner

    def project(self, inputs, summary=None):
        known = None if inputs is None else join_summary(inputs, summary)
        self.lanes = PackedInputs(self.inner.project(inputs, summary), known)
        return self.lanes.joined

    def step(self, projected, fed, states):
        projected, known = self.lanes.split(projected)
        output, states = self.inner.step(projected, fed, states)
        inputs = join(known, fed)
        return ops.cast(inputs, output.dtype) + output, states
