"""Layer that runs a cell over a sequence."""

from typing import Any

import keras
from keras import ops, tree

from keras_seq import backend
from keras_seq.layers.internal.checks import STEPS, check_mask, known_features, same_shape
from keras_seq.layers.internal.loop_cell import GenericCell, loop_cell
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.step_loop import run_steps


@keras.saving.register_keras_serializable(package="keras_seq")
class RNN(keras.layers.RNN):
    """Runs a cell over a sequence: a faster and padding-safe `keras.layers.RNN`.

        output_t, s_t = cell(x_t, s_{t-1})        if step t is real
        output_t, s_t = output_{t-1}, s_{t-1}     if it is masked

    A drop-in replacement for the layer of Keras, also inside `keras.layers.Bidirectional`. For
    the cells of this package, for LSTMCell, GRUCell and SimpleRNNCell of Keras and for stacks of
    these it computes the product of all inputs with the cell's kernel once, before the loop.

    The dropout and zoneout of this package's cells need this layer, because it draws all random
    numbers before the loop. Keras cells with their own dropout run here in inference only. Unlike
    in Keras' loop, NaN in padding does not reach the gradients.

    Recurrent cells have neither `quantize` nor `enable_lora`.

    Shapes: B batch, T steps, D input features, U output features.

    Args:
        cell: A cell, or a list of cells to stack.
        return_sequences: Whether to return the outputs of all steps instead of the last output.
        return_state: Whether to return the last states too.
        go_backwards: Whether to read the sequence from its end. The outputs are then in the order
            of reading.
        stateful: Whether the last states of a batch are the first states of the next batch.
        unroll: Whether to unroll the loop, which requires a known T.
        zero_output_for_mask: Whether outputs are 0 at masked steps.

    Call arguments:
        sequences: Float tensor `(B, T, D)`.
        initial_state: Optional list of the cell's states. Zeros by default.
        mask: Optional bool tensor `(B, T)`, True at real steps; by default the Keras mask.
        training: Whether to apply the cell's dropout.

    Returns:
        outputs: Tensor `(B, T, U)`, or `(B, U)` of the last real step, in the compute dtype.
        states: With `return_state=True` each of the cell's states after the last real step.

    Masks: outputs of all steps carry the mask. The content of masked steps, even NaN, affects
    neither outputs nor gradients, and masked steps may be anywhere in the sequence. A fully
    masked row ends with its initial states, and its output is 0.

    Raises:
        ValueError: If `sequences` or `mask` has the wrong rank or shape, or `initial_state` does
            not fit the cell; in training of a Keras cell with its own dropout.

    Example:

    >>> layer = RNN([LSTMCell(8), GRUCell(4)], return_sequences=True)
    >>> tuple(layer(keras.ops.ones((2, 7, 3))).shape)
    (2, 7, 4)

    Reference:
        Elman, "Finding Structure in Time", Cognitive Science 1990; Gal and Ghahramani, 2016,
        https://arxiv.org/abs/1512.05287, for one dropout mask per sequence.
    """

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        known_features("sequences", sequences_shape, STEPS)
        super().build(sequences_shape, initial_state_shape)

    def call(
        self, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False
    ) -> Any:
        known_features("sequences", sequences.shape, STEPS)
        if mask is not None:
            mask = ops.cast(tree.flatten(mask)[0], "bool")
            check_mask("mask", mask, sequences)
        if initial_state is None:
            initial_state = self.states
        if initial_state is None:
            initial_state = self.get_initial_state(batch_size=backend.shape(sequences)[0])
        if not tree.is_nested(initial_state):
            initial_state = [initial_state]
        self._check_states(initial_state, sequences.shape[0])
        outputs, states = self._run(sequences, list(initial_state), mask, training)
        if self.stateful:
            for variable, state in zip(
                tree.flatten(self.states), tree.flatten(states), strict=True
            ):
                variable.assign(state)
        return (outputs, *states) if self.return_state else outputs

    def _run(self, sequences: Any, initial_state: Any, mask: Any, training: bool | None) -> Any:
        """Returns the outputs and the list of last states."""
        sequences = zero_padding(sequences, mask)
        noise_shape = backend.shape(sequences)[:2] if training else None
        cells = [self.cell, *getattr(self.cell, "cells", [])]
        policy = self.dtype_policy
        if all(getattr(cell, "dtype_policy", policy) == policy for cell in cells):
            form = loop_cell(self.cell, sequences.shape[-1], noise_shape=noise_shape)
        else:
            # Other adapters would read the cell's weights in the dtype of this layer.
            form, policy = GenericCell(self.cell, noise_shape), self.cell.dtype_policy
        sequences, initial_state = tree.map_structure(
            lambda tensor: ops.cast(tensor, policy.compute_dtype), (sequences, initial_state)
        )

        def step(inputs: Any, states: Any) -> Any:
            *last, cell_states = states
            output, cell_states = form.step(inputs, None, cell_states)
            cell_states = cell_states if tree.is_nested(cell_states) else [cell_states]
            return output, [*(output for _ in last), cell_states]

        states = [initial_state]
        if mask is not None:
            # At a masked step Keras repeats the first state on JAX and the last output on
            # TensorFlow. Making the output the first state unifies both for every cell.
            width = getattr(self.cell, "output_size", None) or tree.flatten(self.state_size)[0]
            states.insert(0, ops.zeros((backend.shape(sequences)[0], width), sequences.dtype))
        outputs, states = run_steps(
            step,
            form.project(sequences),
            states,
            policy,
            mask,
            return_sequences=self.return_sequences,
            go_backwards=self.go_backwards,
            unroll=self.unroll,
            zero_output_for_mask=self.zero_output_for_mask,
        )
        return tree.map_structure(
            lambda tensor: ops.cast(tensor, self.compute_dtype), (outputs, states[-1])
        )

    def _check_states(self, states: Any, batch: Any) -> None:
        received = [tuple(state.shape) for state in tree.flatten(states)]
        expected = [(batch, size) for size in tree.flatten(self.state_size)]
        if len(received) != len(expected) or not all(map(same_shape, received, expected)):
            raise ValueError(
                f"`initial_state` must have the shapes {expected} of the cell's states, received "
                f"{received}."
            )
