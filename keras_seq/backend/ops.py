"""Operations that `keras.ops` lacks, or that a backend computes faster."""

import math
from collections.abc import Sequence
from typing import Any

import keras

from keras_seq.backend.device import name


def gather(values: Any, index: Any) -> Any:
    """Gathers entries `(A, ..., J, ...)` of `values` `(A, ..., B, ...)` at `index` `(A, ..., J)`.

    All axes of `index` except the last one are batch axes, which `values` has as well.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        return tf.gather(values, index, batch_dims=len(index.shape) - 1)
    axes, shape = len(index.shape) - 1, keras.ops.shape(values)
    rows = index
    for axis in range(axes):
        stride = math.prod(shape[axis + 1 : axes + 1])
        offset = keras.ops.arange(shape[axis], dtype=index.dtype) * stride
        rows = rows + keras.ops.reshape(offset, (-1,) + (1,) * (axes - axis))
    flat = keras.ops.reshape(values, (-1, *shape[axes + 1 :]))
    return keras.ops.take(flat, rows, axis=0)


def dense(gradient: Any) -> Any:
    """Converts a sparse gradient of an embedding (`tf.IndexedSlices`) to a dense tensor."""
    if name() == "tensorflow":
        import tensorflow as tf

        if isinstance(gradient, tf.IndexedSlices):
            # The same row can occur several times.
            return tf.math.unsorted_segment_sum(
                gradient.values, gradient.indices, gradient.dense_shape[0]
            )
    return gradient


def multiply_no_nan(values: Any, factor: Any) -> Any:
    """Computes `values * factor`, but 0 where `factor` is 0, so that padding has no gradient."""
    if name() == "tensorflow":
        import tensorflow as tf

        return tf.math.multiply_no_nan(values, factor)
    return keras.ops.where(keras.ops.equal(factor, 0), 0.0, values * factor)


def sum_of_squares(tensors: Sequence[Any]) -> Any:
    """Returns the sum of the squares of all numbers in a list of tensors, a float32 scalar."""
    tensors = [keras.ops.cast(tensor, "float32") for tensor in tensors]
    if name() == "tensorflow":
        import tensorflow as tf

        return 2.0 * tf.add_n([tf.nn.l2_loss(tensor) for tensor in tensors])
    return sum(keras.ops.sum(keras.ops.square(tensor)) for tensor in tensors)


def adam_step(
    variable: Any,
    momentum: Any,
    velocity: Any,
    gradient: Any,
    *,
    step: Any,
    learning_rate: Any,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> None:
    """Updates a weight by Adam in one operation. TensorFlow on a single device only.

    `variable`, `momentum` and `velocity` are `tf.Variable`s. `step` counts updates from 1.
    """
    import tensorflow as tf

    dtype = variable.dtype
    count = tf.cast(step, dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.handle,
        v=velocity.handle,
        beta1_power=tf.constant(beta_1, dtype) ** count,
        beta2_power=tf.constant(beta_2, dtype) ** count,
        lr=tf.cast(learning_rate, dtype),
        beta1=beta_1,
        beta2=beta_2,
        epsilon=epsilon,
        grad=tf.cast(gradient, dtype),
    )
