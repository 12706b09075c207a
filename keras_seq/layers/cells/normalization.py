"""Layer normalisation for the inside of a loop."""

import keras
from keras import ops

from keras_seq.layers.step_loop import read_once


def norm_layer(cell, name, center=True):
    """The layer that holds gain and shift of one normalisation of `cell`."""
    return keras.layers.LayerNormalization(
        epsilon=cell.norm_epsilon,
        center=center,
        gamma_initializer=cell.norm_gamma_initializer,
        beta_initializer=getattr(cell, "norm_beta_initializer", "zeros"),
        dtype=cell.dtype_policy,
        name=name,
    )


def normalizer(layer):
    """The function of a built `LayerNormalization`, its weights read once.

        y = gamma (x - mean(x)) / sqrt(var(x) + epsilon) + beta

    Computed in float32 at least, as the layer does.
    """
    gamma = read_once(layer.gamma)
    beta = None if layer.beta is None else read_once(layer.beta)

    def normalize(inputs):
        outputs = ops.cast(inputs, gamma.dtype)
        mean = ops.mean(outputs, axis=-1, keepdims=True)
        centered = outputs - mean
        variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
        outputs = centered * (ops.rsqrt(variance + layer.epsilon) * gamma)
        return ops.cast(outputs if beta is None else outputs + beta, inputs.dtype)

    return normalize
