"""A loop over time steps, and a matrix product for use inside such a loop."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops, tree

from keras_seq.layers.internal.custom_gradient import custom_gradient

# Shape letters: B batch, T steps, D and G features.


def run_steps(
    step: Callable[[Any, Any], tuple[Any, Any]],
    inputs: Any,
    states: Any,
    dtype_policy: keras.DTypePolicy,
    mask: Any = None,
    **options: Any,
) -> tuple[Any, Any]:
    """Runs `step` over axis 1 of `inputs`, differentiable on every backend.

    The loop is a `keras.layers.RNN` with `options` such as `go_backwards`. `step` maps
    `(inputs[:, t], states)` to `(outputs_t, states)`. It reads constants such as memory, masks and
    weights as a closure, so the loop does not carry them from step to step. States do not change
    where `mask` `(B, T)` is False; a mask requires that the first state is the last output.

    Returns outputs `(B, T, ...)` and the last states.
    """
    flat = tree.flatten(states)

    def flat_step(step_inputs: Any, flat_states: Any) -> tuple[Any, Any]:
        outputs, new_states = step(step_inputs, tree.pack_sequence_as(states, flat_states))
        return outputs, tree.flatten(new_states)

    cell = _ClosureCell(flat_step, [state.shape[-1] for state in flat], dtype_policy)
    options = {"return_sequences": True, **options}
    # Has a name, because Keras counts unnamed layers and would number user layers differently.
    loop = keras.layers.RNN(cell, return_state=True, dtype=dtype_policy, name="loop", **options)
    outputs, *last = loop.call(inputs, initial_state=flat, mask=mask)
    return outputs, tree.pack_sequence_as(states, last)


class _ClosureCell:
    """The minimal cell that `keras.layers.RNN` accepts."""

    def __init__(
        self, step: Callable[..., Any], state_size: list[int], dtype_policy: keras.DTypePolicy
    ) -> None:
        self.call = step
        self.state_size = state_size
        self.compute_dtype = dtype_policy.compute_dtype

    def __call__(self, inputs: Any, states: Any) -> Any:
        return self.call(inputs, states)


def read_once(variable: Any) -> Any:
    """Returns the value of a variable as a tensor, so that a loop reads the variable only once."""
    # `ops.convert_to_tensor` would return the variable itself.
    return ops.reshape(variable, tuple(variable.shape))


class LoopMatmul:
    """Multiplication by one matrix `(D, G)` at each step of a loop.

    The gradient multiplies by the transposed matrix, which is computed once outside the loop. On a
    CPU the product with a matrix that is transposed on the fly takes about twice as long.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = read_once(matrix)
        self.transposed = ops.stop_gradient(ops.transpose(self.matrix))

    def __call__(self, inputs: Any) -> Any:
        """Multiplies `inputs` `(B, D)` by the matrix; returns `(B, G)`."""
        return _product(inputs, self.matrix, self.transposed)


@custom_gradient
def _product(inputs: Any, matrix: Any, transposed: Any) -> Any:
    def gradient(upstream: Any) -> Any:
        return (
            ops.matmul(upstream, transposed),
            ops.matmul(ops.transpose(inputs), upstream),
            # None, because TensorFlow would allocate and add zeros at each step.
            None,
        )

    return ops.matmul(inputs, matrix), gradient
