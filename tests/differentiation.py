"""Gradients of functions of tensors and variables on every backend, and fast calls on JAX."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops


def quick(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function on JAX, where running many small operations is slow.

    On JAX, assignments to variables in the function, such as seed states, are discarded.
    """
    if keras.backend.backend() != "jax":
        return function
    import jax

    def stateless(*arguments: Any) -> Any:
        with keras.StatelessScope():
            return function(*arguments)

    return jax.jit(stateless)


def gradients(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], variables: Sequence[Any] = ()
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Gradients of a scalar `function(*arrays)` by each array and by each Keras variable."""

    def compute(values, tensors):
        with keras.StatelessScope(list(zip(variables, values, strict=True))):
            return function(*tensors)

    values = [ops.convert_to_tensor(variable.value) for variable in variables]
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    if keras.backend.backend() == "jax":
        import jax

        by_variable, by_array = quick(jax.grad(compute, argnums=(0, 1)))(values, tensors)
    elif keras.backend.backend() == "torch":
        import torch

        values = [tensor.detach().requires_grad_() for tensor in values]
        tensors = [tensor.detach().requires_grad_() for tensor in tensors]
        found = torch.autograd.grad(compute(values, tensors), [*values, *tensors])
        by_variable, by_array = found[: len(values)], found[len(values) :]
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch([values, tensors])
            result = compute(values, tensors)
        by_variable, by_array = tape.gradient(result, (values, tensors))
        by_variable = [tf.convert_to_tensor(gradient) for gradient in by_variable]
    return (
        [np.asarray(ops.convert_to_numpy(gradient)) for gradient in by_array],
        [np.asarray(ops.convert_to_numpy(gradient)) for gradient in by_variable],
    )
