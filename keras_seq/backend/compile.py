"""Compiled functions, and the shapes of batches for them."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq.backend.device import name
from keras_seq.backend.variables import to_numpy


def compiled(
    function: Callable[..., Any],
    variables: Sequence[Any],
    ranks: Sequence[int],
    dtypes: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Compiles a function of tensors that reads a model's variables.

    Args:
        function: Takes tensors, returns a structure of tensors.
        variables: Keras variables that it reads. Their values are looked up
            at each call, so the function may be used while they are trained.
        ranks: Rank of each argument. On TensorFlow one graph serves every
            shape of these ranks; on JAX each shape is compiled.
        dtypes: Of each argument; "int32" by default.

    Returns:
        A function of numpy arrays.
    """
    dtypes = dtypes or ["int32"] * len(ranks)
    if name() == "tensorflow":
        import tensorflow as tf

        signature = [
            tf.TensorSpec([None] * rank, dtype) for rank, dtype in zip(ranks, dtypes, strict=True)
        ]
        graph = tf.function(function, input_signature=signature, autograph=False)
        return lambda *arrays: graph(*map(tf.constant, arrays, dtypes))
    if name() == "jax":
        import jax

        @jax.jit
        def pure(values: Any, *arrays: Any) -> Any:
            with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
                return function(*arrays)

        return lambda *arrays: pure([v.value for v in variables], *map(np.asarray, arrays, dtypes))
    return lambda *arrays: function(
        *map(keras.ops.convert_to_tensor, map(np.asarray, arrays, dtypes))
    )


def on_host(function: Callable[..., np.ndarray], shape: Sequence[int], *arrays: Any) -> Any:
    """Calls a function of numpy arrays, in compiled code too.

    XLA cannot compile the call on TensorFlow, so a model needs `jit_compile=False` there.

    Args:
        function: Takes numpy arrays, returns a float32 array. It must not use Keras.
        shape: Shape of the array that the function returns.
        *arrays: Tensors.

    Returns:
        Float32 tensor.
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
    """Whether every new shape costs a compilation, so that few shapes should be used."""
    return name() == "jax"


def padded(
    lists: Sequence[Sequence[int]], rows: int | None = None, multiple: int = 16
) -> np.ndarray:
    """Lists of ids as one array, 0 behind each; as large as they are where shapes cost nothing.

    Args:
        lists: One at least.
        rows: How many rows there are where every shape is compiled; the next power of two
            unless told otherwise.
        multiple: Of what the width is a multiple there.

    Returns:
        Int32 array, one list a row, then rows of zeros; one column at least.
    """
    height, width = len(lists), max(1, *map(len, lists))
    if wants_static_shapes():
        height = rows or 1 << (height - 1).bit_length()
        width = -(-width // multiple) * multiple
    batch = np.zeros((height, width), np.int32)
    for row, ids in enumerate(lists):
        batch[row, : len(ids)] = ids
    return batch
