"""Learned positions."""

import keras
from keras import ops

from keras_seq.layers.internal.attention_scores import check_axes

# Shape letters: B batch, T steps, D features, K beam.


@keras.saving.register_keras_serializable(package="keras_seq")
class LearnedPosition(keras.layers.Layer):
    """Adds a learned vector of its position to every step.

        y[p] = x[p] + E[p]

    Shapes: B batch, T steps, D features.

    Args:
        length: Positive integer, the number of positions that have a vector.

    Call arguments:
        inputs: Float tensor `(B, T, D)`; step t is at position t.

    Returns:
        Tensor `(B, T, D)` in the compute dtype.

    Masks: the mask of `inputs` passes through.

    Raises:
        ValueError: At construction if `length` is not a positive integer; at
            build if D is unknown; at a call of more steps than `length`, where
            their number is known. Where it is not, TensorFlow raises an error
            of its own on a CPU, and JAX, whose numbers of steps are always
            known, has none.

    Example:

    >>> position = LearnedPosition(length=10)
    >>> tuple(position(keras.ops.zeros((2, 3, 4))).shape)
    (2, 3, 4)

    Reference:
        Gehring et al., "Convolutional Sequence to Sequence Learning", 2017,
        section 3.1, https://arxiv.org/abs/1705.03122
    """

    def __init__(self, length, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(length, int) or length < 1:
            raise ValueError(f"`length` must be a positive integer, received {length!r}.")
        self.length = length
        self.supports_masking = True

    def build(self, input_shape):
        check_axes("inputs", input_shape, ("batch", "steps", "features"))
        if input_shape[-1] is None:
            raise ValueError(
                "`LearnedPosition` needs a known number of features, "
                f"received inputs of shape {tuple(input_shape)}."
            )
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.length, input_shape[-1]),
            # Small beside embeddings, whose numbers are of the order of 1 once they are scaled.
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )

    def compute_output_shape(self, input_shape):
        # Without this, Keras calls the layer on 83 steps on torch if their number is unknown.
        self._check_steps(input_shape)
        return input_shape

    def call(self, inputs):
        self._check_steps(inputs.shape)
        return self._add(inputs, ops.arange(ops.shape(inputs)[1]))

    def _check_steps(self, shape):
        steps = shape[1]
        # On JAX an unknown number is an object that compares with none.
        if isinstance(steps, int) and steps > self.length:
            raise ValueError(
                f"`LearnedPosition` has vectors for {self.length} steps, received "
                f"{steps} in the shape {tuple(shape)}: give a larger `length`, "
                "or use positions that need no table, as `SinusoidalPosition`."
            )

    def step(self, inputs, position):
        """Adds the vector of one position to every vector.

        Args:
            inputs: Float tensor `(B, K, D)`, one vector for each hypothesis.
            position: Integer scalar tensor, below `length`.

        Returns:
            Tensor `(B, K, D)` in the compute dtype.
        """
        return self._add(inputs, ops.cast(position, "int32"))

    def _add(self, inputs, positions):
        vectors = ops.take(self.embeddings, positions, axis=0)
        return ops.cast(inputs, self.compute_dtype) + ops.cast(vectors, self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "length": self.length}
