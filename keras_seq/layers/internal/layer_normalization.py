"""Layer normalisation with a gradient of few passes on TensorFlow."""

import keras
from keras import ops

from keras_seq.layers.internal.custom_gradient import custom_gradient
from keras_seq.layers.internal.precision import at_least_float32

# Shape letters: N rows, D features.


@keras.saving.register_keras_serializable(package="keras_seq")
class LayerNormalization(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` of the last axis, its gradient written out.

        y = gamma * n + beta,  n = (x - mean(x)) / sqrt(var(x) + epsilon)

    TensorFlow goes over `x` dozens of times for what it derives of mean and
    variance; written out it is ten. Elsewhere, and where nothing is trained, so
    that an export has no gradient of ours in it, this is Keras' layer.

    Args:
        **kwargs: Those of `keras.layers.LayerNormalization`, which must leave it
            the last axis, gain and shift.

    Call arguments:
        inputs: Float tensor `(..., D)`.
        training: Whether it is trained.

    Returns:
        Tensor of the same shape in the compute dtype.

    Example:

    >>> norm = LayerNormalization(epsilon=1e-5)
    >>> [round(float(x), 3) for x in norm(keras.ops.array([[1.0, 3.0]]), training=True)[0]]
    [-1.0, 1.0]

    Reference:
        Ba, Kiros and Hinton, "Layer Normalization", 2016,
        https://arxiv.org/abs/1607.06450
    """

    def call(self, inputs, training=None):
        if keras.backend.backend() != "tensorflow" or not training:
            # Nine operations, where Keras' layer has sixteen: a search takes ten of these a step.
            inputs = at_least_float32(inputs)
            gamma, beta = (ops.cast(weight, inputs.dtype) for weight in (self.gamma, self.beta))
            centered = inputs - ops.mean(inputs, axis=-1, keepdims=True)
            variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
            outputs = centered * (ops.rsqrt(variance + self.epsilon) * gamma) + beta
            return ops.cast(outputs, self.compute_dtype)
        rows = at_least_float32(ops.reshape(inputs, (-1, inputs.shape[-1])))
        gamma, beta = (ops.cast(weight, rows.dtype) for weight in (self.gamma, self.beta))
        outputs = _normalization(self.epsilon)(rows, gamma, beta)
        return ops.cast(ops.reshape(outputs, ops.shape(inputs)), self.compute_dtype)


def _normalization(epsilon):
    @custom_gradient
    def normalize(rows, gamma, beta):
        """`(N, D)`, `(D,)`, `(D,)` -> `(N, D)`."""
        centered = rows - ops.mean(rows, axis=-1, keepdims=True)
        scale = ops.rsqrt(ops.mean(ops.square(centered), axis=-1, keepdims=True) + epsilon)
        normal = centered * scale

        def gradient(upstream):
            along = upstream * normal
            # Sums over rows and means over features as products: TensorFlow's sums are slower.
            ones = ops.ones((1, ops.shape(rows)[0]), rows.dtype)
            share = ops.reshape(gamma, (-1, 1)) / gamma.shape[0]
            mean = ops.matmul(upstream, share) + normal * ops.matmul(along, share)
            return (
                (upstream * gamma - mean) * scale,
                ops.reshape(ops.matmul(ones, along), (-1,)),
                ops.reshape(ops.matmul(ones, upstream), (-1,)),
            )

        return normal * gamma + beta, gradient

    return normalize
