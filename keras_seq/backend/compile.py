"""Compiled functions, and the shapes of their arguments."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq.backend.device import name
from keras_seq.backend.variables import to_numpy
from keras_seq.process.signals import safe_point


def compiled(
    function: Callable[..., Any],
    variables: Sequence[Any],
    ranks: Sequence[int],
    dtypes: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Compiles a function of tensors that reads the variables of a model.

    Each call uses the current values of `variables`. On TensorFlow, one graph serves all shapes of
    these `ranks` of arguments. On JAX, each shape is compiled. On torch, the function runs as it
    is, without gradients. The default of `dtypes` is "int32".
    Returns a function of numpy arrays, whose return is a safe point for signals.
    """
    dtypes = dtypes or ["int32"] * len(ranks)
    if name() == "tensorflow":
        run = _compiled_by_tensorflow(function, ranks, dtypes)
    elif name() == "jax":
        run = _compiled_by_jax(function, variables)
    else:

        def run(*arrays: Any) -> Any:
            with without_gradients():
                return function(*map(keras.ops.convert_to_tensor, arrays))

    def call(*arrays: Any) -> Any:
        result = run(*map(np.asarray, arrays, dtypes))
        safe_point()
        return result

    return call


def _compiled_by_tensorflow(
    function: Callable[..., Any], ranks: Sequence[int], dtypes: Sequence[str]
) -> Callable[..., Any]:
    import tensorflow as tf

    signature = [
        tf.TensorSpec([None] * rank, dtype) for rank, dtype in zip(ranks, dtypes, strict=True)
    ]
    graph = tf.function(function, input_signature=signature, autograph=False)
    return lambda *arrays: graph(*map(tf.constant, arrays))


def _compiled_by_jax(function: Callable[..., Any], variables: Sequence[Any]) -> Callable[..., Any]:
    import jax

    @jax.jit
    def pure(values: Any, *arrays: Any) -> Any:
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return function(*arrays)

    return lambda *arrays: pure([variable.value for variable in variables], *arrays)


def without_gradients() -> contextlib.AbstractContextManager[Any]:
    """Context in which torch does not keep what gradients would need, such as the states of steps.

    Other backends keep it only where a gradient is asked for.
    """
    if name() != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.no_grad()


def on_host(function: Callable[..., np.ndarray], shape: Sequence[int], *arrays: Any) -> Any:
    """Calls a numpy function, also from compiled code. It returns a float32 array of `shape`.

    The function takes numpy arrays and must not use Keras. On TensorFlow, XLA cannot compile the
    call, so the model must be compiled with `jit_compile=False`.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        result = tf.numpy_function(function, arrays, tf.float32)
        result.set_shape(shape)
        return result
    if name() == "jax":
        import jax

        def call(*values: Any) -> np.ndarray:
            return function(*map(np.asarray, values))

        return jax.pure_callback(call, jax.ShapeDtypeStruct(tuple(shape), np.float32), *arrays)
    return keras.ops.convert_to_tensor(function(*map(to_numpy, arrays)))


def wants_static_shapes() -> bool:
    """Returns True if the backend compiles a program for each new shape of its inputs."""
    return name() == "jax"


def padded(
    lists: Sequence[Sequence[int]], rows: int | None = None, multiple: int = 16
) -> np.ndarray:
    """Pads lists of ids with 0 to an int32 array with one list per row and at least one column.

    Where each shape is compiled, the array has few different shapes: `rows` rows, by default the
    next power of two, and a width that is a multiple of `multiple`.
    """
    height, width = len(lists), max(1, *map(len, lists))
    if wants_static_shapes():
        height = rows or 1 << (height - 1).bit_length()
        width = -(-width // multiple) * multiple
    batch = np.zeros((height, width), np.int32)
    for row, ids in enumerate(lists):
        batch[row, : len(ids)] = ids
    return batch
