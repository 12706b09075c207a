"""Layer normalization inside a loop."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.custom_gradient import custom_gradient
from keras_seq.layers.internal.step_loop import read_once


def norm_layer(cell: Any, name: str, center: bool = True) -> keras.layers.LayerNormalization:
    """Makes a `LayerNormalization` with the initializers and the epsilon of `cell`."""
    return keras.layers.LayerNormalization(
        epsilon=cell.norm_epsilon,
        center=center,
        gamma_initializer=cell.norm_gamma_initializer,
        beta_initializer=getattr(cell, "norm_beta_initializer", "zeros"),
        dtype=cell.dtype_policy,
        name=name,
    )


def normalizer(layer: keras.layers.LayerNormalization, shifts: list[Any]) -> Callable[[Any], Any]:
    """Returns a function that computes a built `LayerNormalization`.

        y = gamma (x - mean(x)) / sqrt(var(x) + epsilon) + sum of shifts

    The function reads the weights once. It computes in float32 or more, like the layer. The
    shifts replace beta, and None entries are skipped.
    """
    gamma = read_once(layer.gamma)
    shifts = [ops.cast(read_once(shift), gamma.dtype) for shift in shifts if shift is not None]
    shift = sum(shifts[1:], shifts[0]) if shifts else None

    @custom_gradient
    def standardize(inputs: Any) -> Any:
        centered = inputs - ops.mean(inputs, axis=-1, keepdims=True)
        scale = ops.rsqrt(ops.mean(ops.square(centered), axis=-1, keepdims=True) + layer.epsilon)
        outputs = centered * scale

        # Automatic differentiation takes twice as many operations, at every step of a loop.
        def gradient(upstream: Any) -> Any:
            along = ops.mean(upstream * outputs, axis=-1, keepdims=True)
            mean = ops.mean(upstream, axis=-1, keepdims=True)
            return (upstream - mean - outputs * along) * scale

        return outputs, gradient

    def normalize(inputs: Any) -> Any:
        outputs = standardize(ops.cast(inputs, gamma.dtype)) * gamma
        return ops.cast(outputs if shift is None else outputs + shift, inputs.dtype)

    return normalize
