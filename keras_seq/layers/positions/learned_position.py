"""Learned positions."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import STEPS, check_positive, known_features
from keras_seq.layers.internal.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_seq")
class LearnedPosition(ConfiguredLayer):
    """Adds a learned vector for the position to each step.

        y[p] = x[p] + E[p]

    Use it where the longest sequence is known. `SinusoidalPosition` has no such limit.

    Args:
        length: Positive integer, the number of positions that have a vector.

    Shapes, call arguments, outputs and masks are those of `SinusoidalPosition`.

    Raises:
        ValueError: At construction if `length` is not a positive integer. At build if D is
            unknown. At call if T is known and exceeds `length`. If T is unknown, TensorFlow raises
            its own error on a CPU.

    Example:

    >>> position = LearnedPosition(length=10)
    >>> tuple(position(keras.ops.zeros((2, 3, 4))).shape)
    (2, 3, 4)

    Reference:
        Gehring et al., 2017, section 3.1, https://arxiv.org/abs/1705.03122
    """

    def __init__(self, length: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_positive(length=length)
        self.length = length

    def build(self, input_shape: Any) -> None:
        features = known_features("inputs", input_shape, STEPS)
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.length, features),
            # Small compared with scaled embeddings, which have unit variance.
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )

    def compute_output_shape(self, input_shape: Any) -> Any:
        # Without this method, Keras on torch calls the layer on 83 steps if T is unknown.
        self._check_steps(input_shape)
        return input_shape

    def call(self, inputs: Any) -> Any:
        self._check_steps(inputs.shape)
        return self._add(inputs, ops.arange(backend.shape(inputs)[1]))

    def _check_steps(self, shape: Any) -> None:
        steps = shape[1]
        # On JAX an unknown size is an object that cannot be compared.
        if isinstance(steps, int) and steps > self.length:
            raise ValueError(
                f"`LearnedPosition` has vectors for {self.length} steps, received "
                f"{steps} in the shape {tuple(shape)}: give a larger `length`, "
                "or use positions without a table, such as `SinusoidalPosition`."
            )

    def step(self, inputs: Any, position: Any) -> Any:
        """Adds the vector of one position, a scalar, to the vectors `(B, K, D)` of K hypotheses."""
        return self._add(inputs, ops.cast(position, "int32"))

    def _add(self, inputs: Any, positions: Any) -> Any:
        vectors = ops.take(self.embeddings, positions, axis=0)
        return ops.cast(inputs, self.compute_dtype) + ops.cast(vectors, self.compute_dtype)
