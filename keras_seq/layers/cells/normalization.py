"""Layer normalisation for the inside of a loop."""

import keras
from keras import ops

from keras_seq.layers.internal.custom_gradient import custom_gradient
from keras_seq.layers.internal.step_loop import read_once


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


def normalizer(layer, shifts):
    """The function of a built `LayerNormalization`, its weights read once.

        y = gamma (x - mean(x)) / sqrt(var(x) + epsilon) + sum of shifts

    Computed in float32 at least, as the layer does.

    Args:
        layer: A `keras.layers.LayerNormalization`.
        shifts: List of weights in place of its beta, or None among them.
    """
    gamma = read_once(layer.gamma)
    shifts = [ops.cast(read_once(shift), gamma.dtype) for shift in shifts if shift is not None]
    shift = sum(shifts[1:], shifts[0]) if shifts else None

    @custom_gradient
    def standardize(inputs):
        centered = inputs - ops.mean(inputs, axis=-1, keepdims=True)
        scale = ops.rsqrt(ops.mean(ops.square(centered), axis=-1, keepdims=True) + layer.epsilon)
        outputs = centered * scale

        # The chain through mean and variance has twice as many steps, which a loop would repeat.
        def gradient(upstream):
            along = ops.mean(upstream * outputs, axis=-1, keepdims=True)
            mean = ops.mean(upstream, axis=-1, keepdims=True)
            return (upstream - mean - outputs * along) * scale

        return outputs, gradient

    def normalize(inputs):
        outputs = standardize(ops.cast(inputs, gamma.dtype)) * gamma
        return ops.cast(outputs if shift is None else outputs + shift, inputs.dtype)

    return normalize
