"""Reshaping and matrix products with as few operations as the shapes allow.

Decoding runs hundreds of small operations a step, most of them arithmetic on shapes where a
tensor's batch is unknown while the graph is built. What is known is used here.
"""

import keras
from keras import ops


def reshape(tensor, shape):
    """As `ops.reshape`, without asking for the size of the only unknown dimension.

    Args:
        tensor: Any tensor; its size must not be 0 in a known dimension.
        shape: Integers, and scalar tensors where a size is not known.
    """
    unknown = [axis for axis, size in enumerate(shape) if not isinstance(size, int)]
    if len(unknown) == 1:
        shape = [-1 if axis == unknown[0] else size for axis, size in enumerate(shape)]
    return ops.reshape(tensor, shape)


def add_bias(inputs, bias):
    """`inputs` `(..., U)` plus `bias` `(U,)`."""
    if keras.backend.standardize_dtype(inputs.dtype) in ("bfloat16", "float16"):
        # The gradient of TensorFlow's addition of a bias adds up all rows in halves.
        return inputs + bias
    # That addition, by this name: its gradient takes a quarter of the time of a sum's.
    return ops.add(inputs, bias)


def dense(inputs, kernel, bias=None):
    """`inputs` `(..., D)` times `kernel` `(D, U)`, plus `bias` `(U,)` -> `(..., U)`.

    As one product of two matrices: `ops.matmul` of a tensor of higher rank
    computes shapes at run time, which for a single step costs more than the
    product.
    """
    outputs = ops.matmul(ops.reshape(inputs, (-1, inputs.shape[-1])), kernel)
    if bias is not None:
        outputs = add_bias(outputs, bias)
    return reshape(outputs, (*ops.shape(inputs)[:-1], kernel.shape[-1]))


def fits(tensor, kernel):
    """Whether `tensor` is of the shape `(B, T, D)` for a `kernel` `(D, U)`."""
    return len(tensor.shape) == 3 and tensor.shape[-1] == kernel.shape[0]
