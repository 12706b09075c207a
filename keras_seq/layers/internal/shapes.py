"""Reshaping and matrix products that compute few shapes at run time."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend


def reshape(tensor: Any, shape: Any) -> Any:
    """`ops.reshape` that does not compute the size of a single unknown dimension.

    `shape` has integers, and scalar tensors for unknown sizes. Known sizes must not be 0.
    """
    unknown = [axis for axis, size in enumerate(shape) if not isinstance(size, int)]
    if len(unknown) == 1:
        shape = [-1 if axis == unknown[0] else size for axis, size in enumerate(shape)]
    return ops.reshape(tensor, shape)


def add_bias(inputs: Any, bias: Any) -> Any:
    """Adds `bias` `(U,)` to `inputs` `(..., U)`."""
    if keras.backend.standardize_dtype(inputs.dtype) in ("bfloat16", "float16"):
        # The gradient of TensorFlow's BiasAdd would sum all rows in half precision.
        return inputs + bias
    # `ops.add` becomes BiasAdd. Its gradient is four times as fast as the gradient of `+`.
    return ops.add(inputs, bias)


def dense_rows(rows: Any, kernel: Any, bias: Any = None) -> Any:
    """Multiplies `rows` `(N, D)` by `kernel` `(D, U)` and adds `bias` `(U,)`, if any."""
    outputs = ops.matmul(rows, kernel)
    return outputs if bias is None else add_bias(outputs, bias)


def dense(inputs: Any, kernel: Any, bias: Any = None) -> Any:
    """Multiplies `inputs` `(..., D)` by `kernel` `(D, U)` and adds `bias` `(U,)`, if any.

    The inputs are reshaped to a matrix, because `ops.matmul` of tensors of higher rank computes
    shapes at run time. For a single step this costs more than the product.
    """
    outputs = dense_rows(ops.reshape(inputs, (-1, inputs.shape[-1])), kernel, bias)
    return reshape(outputs, (*backend.shape(inputs)[:-1], kernel.shape[-1]))


def fits(tensor: Any, kernel: Any) -> bool:
    """Returns True if `tensor` has the shape `(B, T, D)` for a `kernel` `(D, U)`."""
    return len(tensor.shape) == 3 and tensor.shape[-1] == kernel.shape[0]
