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
    axes, sizes = len(index.shape) - 1, keras.ops.shape(values)
    rows = index
    for axis in range(axes):
        stride = math.prod(sizes[axis + 1 : axes + 1])
        offset = keras.ops.arange(sizes[axis], dtype=index.dtype) * stride
        rows = rows + keras.ops.reshape(offset, (-1,) + (1,) * (axes - axis))
    flat = keras.ops.reshape(values, (-1, *sizes[axes + 1 :]))
    return keras.ops.take(flat, rows, axis=0)


def shape(tensor: Any) -> tuple[Any, ...]:
    """Returns what `keras.ops.shape` returns, computed by two TensorFlow operations.

    `keras.ops.shape` adds four operations for each unknown size. Models have hundreds of shapes;
    the training step of a small Transformer has a fifth fewer operations this way.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        if isinstance(tensor, tf.Tensor):
            known = tensor.shape.as_list()
            if None not in known:
                return tuple(known)
            sizes = zip(known, tf.unstack(tf.shape(tensor)), strict=True)
            return tuple(size if fixed is None else fixed for fixed, size in sizes)
    return tuple(keras.ops.shape(tensor))


def argmax(values: Any, axis: int) -> Any:
    """Returns what `keras.ops.argmax` returns, as int32.

    On TensorFlow, Keras orders -0.0 below 0.0 by the bits of the numbers, which takes time and has
    no form in ONNX.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        if isinstance(values, tf.Tensor):
            return tf.argmax(values, axis=axis, output_type=tf.int32)
    return keras.ops.cast(keras.ops.argmax(values, axis=axis), "int32")


def top_k(values: Any, count: int) -> tuple[Any, Any]:
    """Returns the N largest values of the last axis, largest first, and their int32 indices.

    Equal values are in the order of their indices. `keras.ops.top_k` has no such order on torch.
    """
    if name() == "torch":
        import torch

        values, index = torch.sort(values, dim=-1, descending=True, stable=True)
        return values[..., :count], index[..., :count].to(torch.int32)
    best, index = keras.ops.top_k(values, count)
    return best, keras.ops.cast(index, "int32")


def word(value: Any) -> Any:
    """Returns the lowest 32 bits of integers: as uint32, or in int64 on torch.

    Torch has no sums and products of uint32, and those of int64 keep the lowest bits.
    """
    if name() == "torch":
        return keras.ops.bitwise_and(keras.ops.cast(value, "int64"), 0xFFFFFFFF)
    return keras.ops.cast(value, "uint32")


def sum_words(words: Any, axis: int) -> Any:
    """Sums results of `word` along an axis, modulo 2^32."""
    if name() != "tensorflow":
        return word(keras.ops.sum(words, axis=axis))
    import tensorflow as tf

    # LiteRT has no sum of unsigned numbers. The sum of signed ones has the same bits.
    return tf.bitcast(tf.reduce_sum(tf.bitcast(words, tf.int32), axis), tf.uint32)


def random_uint16(like: Any, seed: Any) -> Any:
    """Draws uint16 in the shape of `like`, four from each random number of 64 bits.

    TensorFlow only. `seed` is a `keras.random.SeedGenerator`.
    """
    import tensorflow as tf

    size = tf.size(like)
    numbers = keras.random.randint(
        ((size + 3) // 4, 1), -(2**63), 2**63 - 1, dtype="int64", seed=seed
    )
    bits = tf.reshape(tf.bitcast(numbers, tf.uint16), (-1,))
    return tf.reshape(tf.slice(bits, (0,), (size,)), tf.shape(like))


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
    decays: tuple[Any, Any],
    learning_rate: Any,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> None:
    """Updates a weight by Adam in one operation. TensorFlow on a single device only.

    `variable`, `momentum` and `velocity` are `tf.Variable`s. `decays` are `beta_1` and `beta_2` to
    the power of the number of this update, which counts from 1.
    """
    import tensorflow as tf

    dtype = variable.dtype
    beta_1_power, beta_2_power = (tf.cast(decay, dtype) for decay in decays)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.handle,
        v=velocity.handle,
        beta1_power=beta_1_power,
        beta2_power=beta_2_power,
        lr=tf.cast(learning_rate, dtype),
        beta1=beta_1,
        beta2=beta_2,
        epsilon=epsilon,
        grad=tf.cast(gradient, dtype),
    )
