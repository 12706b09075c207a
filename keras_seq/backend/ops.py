"""Operations that `keras.ops` lacks, or that one backend computes in fewer passes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_seq.backend.device import name


def gather(values: Any, index: Any) -> Any:
    """Picks along an axis: `(A, ..., B, ...)` by `(A, ..., J)` -> `(A, ..., J, ...)`.

    The axes before the last of `index` are those of `values`, one to one.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        # One operation, where rows of a flattened tensor are a dozen, with arithmetic on shapes.
        return tf.gather(values, index, batch_dims=len(index.shape) - 1)
    axes, shape = len(index.shape) - 1, keras.ops.shape(values)
    rows = index
    for axis in range(axes):
        stride = math.prod(shape[axis + 1 : axes + 1])
        place = keras.ops.arange(shape[axis], dtype=index.dtype) * stride
        rows = rows + keras.ops.reshape(place, (-1,) + (1,) * (axes - axis))
    flat = keras.ops.reshape(values, (-1, *shape[axes + 1 :]))
    return keras.ops.take(flat, rows, axis=0)


def dense(gradient: Any) -> Any:
    """A gradient as a tensor: TensorFlow gives that of a table as rows and their numbers."""
    if name() == "tensorflow":
        import tensorflow as tf

        if isinstance(gradient, tf.IndexedSlices):
            # Rows that come more than once are added up.
            return tf.math.unsorted_segment_sum(
                gradient.values, gradient.indices, gradient.dense_shape[0]
            )
    return gradient


def multiply_no_nan(values: Any, factor: Any) -> Any:
    """`values * factor`, and 0 where `factor` is 0, so padding has no gradient."""
    if name() == "tensorflow":
        import tensorflow as tf

        return tf.math.multiply_no_nan(values, factor)
    return keras.ops.where(keras.ops.equal(factor, 0), 0.0, values * factor)


def sum_of_squares(tensors: Sequence[Any]) -> Any:
    """Float32 scalar, the sum over all numbers of tensors, each in one pass where there is one."""
    tensors = [keras.ops.cast(tensor, "float32") for tensor in tensors]
    if name() == "tensorflow":
        import tensorflow as tf

        return 2.0 * tf.add_n([tf.nn.l2_loss(tensor) for tensor in tensors])
    return sum(keras.ops.sum(keras.ops.square(tensor)) for tensor in tensors)


def apply_adam(
    variables: Sequence[Any],
    momentums: Sequence[Any],
    velocities: Sequence[Any],
    gradients: Sequence[Any],
    step: Any,
    numbers: Mapping[str, Any],
) -> None:
    """An update of Adam, each weight in one pass, on TensorFlow, where all are on one device.

    What all weights share is computed once: an operation for each takes longer to trace and to
    optimize than all of them to run.

    Args:
        variables: Keras variables.
        momentums: Keras variables, the means of gradients.
        velocities: Keras variables, the means of their squares.
        gradients: Tensors of those shapes.
        step: Integer tensor, number of this update, from 1.
        numbers: `lr`, `beta1`, `beta2` and `epsilon`, floats or tensors.
    """
    import tensorflow as tf

    shared: dict[Any, dict[str, Any]] = {}
    for variable, momentum, velocity, gradient in zip(
        variables, momentums, velocities, gradients, strict=True
    ):
        kind = variable.value.dtype
        if kind not in shared:
            made = {key: keras.ops.cast(value, variable.dtype) for key, value in numbers.items()}
            for beta in ("beta1", "beta2"):
                made[f"{beta}_power"] = made[beta] ** tf.cast(step, kind)
            shared[kind] = made
        tf.raw_ops.ResourceApplyAdam(
            var=variable.value.handle,
            m=momentum.value.handle,
            v=velocity.value.handle,
            grad=tf.cast(gradient, kind),
            **shared[kind],
        )
