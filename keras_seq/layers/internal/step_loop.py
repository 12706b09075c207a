"""A loop over time steps, and the matrix product made for the inside of one."""

import keras
from keras import ops, tree

from keras_seq.layers.internal.custom_gradient import custom_gradient

# Shape letters: B batch, T steps, D and G features.


def run_steps(step, inputs, states, dtype_policy, mask=None, **options):
    """Runs `step` over axis 1 of `inputs`, on every backend, with gradients.

    `keras.layers.RNN` is the loop. Whatever `step` reads besides its arguments
    (memory, masks, weights) it reads as a closure, so none of it is carried
    from step to step.

    Args:
        step: Function of `(inputs[:, t], states)` -> `(outputs_t, states)`.
        inputs: Tensor `(B, T, D)`.
        states: Nested structure of tensors, one of them at least.
        dtype_policy: Policy of the layer that runs the loop.
        mask: Optional bool tensor `(B, T)`: states stay as they are where it
            is False. The first state then must be the last output.
        options: Of `keras.layers.RNN`, as `go_backwards`.

    Returns:
        Outputs `(B, T, ...)` and the last states.
    """
    flat = tree.flatten(states)

    def flat_step(step_inputs, flat_states):
        outputs, new_states = step(step_inputs, tree.pack_sequence_as(states, flat_states))
        return outputs, tree.flatten(new_states)

    cell = _ClosureCell(flat_step, [state.shape[-1] for state in flat], dtype_policy)
    options = {"return_sequences": True, **options}
    # With a name, since Keras would count it among the layers of the user.
    loop = keras.layers.RNN(cell, return_state=True, dtype=dtype_policy, name="loop", **options)
    outputs, *last = loop.call(inputs, initial_state=flat, mask=mask)
    return outputs, tree.pack_sequence_as(states, last)


class _ClosureCell:
    """The least that `keras.layers.RNN` asks of a cell."""

    def __init__(self, step, state_size, dtype_policy):
        self.call = step
        self.state_size = state_size
        self.compute_dtype = dtype_policy.compute_dtype

    def __call__(self, inputs, states):
        return self.call(inputs, states)


def read_once(variable):
    """A variable's value as a tensor, which a loop then does not read at every step."""
    # `ops.convert_to_tensor` hands on the variable itself.
    return ops.reshape(variable, tuple(variable.shape))


class LoopMatmul:
    """A matrix that every step of a loop multiplies by.

    Its transpose, which the gradient multiplies by, is laid out once outside
    the loop: a product with a matrix read across its rows takes about twice as
    long on a CPU, and a loop would repeat it at every step.

    Args:
        matrix: Tensor or variable `(D, G)`.
    """

    def __init__(self, matrix):
        self.matrix = read_once(matrix)
        self.transposed = ops.stop_gradient(ops.transpose(self.matrix))

    def __call__(self, inputs):
        """`inputs` `(B, D)` -> `(B, G)`."""
        return _product(inputs, self.matrix, self.transposed)


@custom_gradient
def _product(inputs, matrix, transposed):
    def gradient(upstream):
        return (
            ops.matmul(upstream, transposed),
            ops.matmul(ops.transpose(inputs), upstream),
            # Not zeros: TensorFlow would fill and add up a matrix of them at every step.
            None,
        )

    return ops.matmul(inputs, matrix), gradient
