"""Attention with linear biases."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.positions.attention_position import AttentionPosition


@keras.saving.register_keras_serializable(package="keras_seq")
class LinearBiases(AttentionPosition):
    """Lowers each score in proportion to the distance of its steps ("ALiBi").

        scores'[h, t, s] = scores[h, t, s] - m_h |t - s|
        m_h              = 2^(-8 h / H),  h = 1 .. H

    Use it as the `position` of `MultiHeadSelfAttention` for models that must handle longer
    sequences than those in training. The layer has no weights. The paper covers causal attention;
    here later steps count by their distance too. If H is not a power of 2, the code of the paper
    interleaves two sequences of slopes, while this layer applies the formula. Distances are
    computed in float32 under every dtype policy.

    Shapes: B batch, H heads, T steps.

    Call arguments:
        inputs: Float tensor `(B, H, T, T)`, scores of queries by keys.

    Returns:
        Tensor `(B, H, T, T)` in the compute dtype.

    Masks: none, because padding is masked in the weights and not in the scores.

    Raises:
        ValueError: At build if `inputs` does not have four axes or H is unknown.

    Example:

    >>> scores = LinearBiases()(keras.ops.zeros((1, 2, 3, 3)))
    >>> [float(x) for x in scores[0, 0, 2]]  # the first of two heads: 2^-4
    [-0.125, -0.0625, 0.0]

    Reference:
        Press, Smith and Lewis, "Train Short, Test Long: Attention with Linear Biases Enables Input
        Length Extrapolation", ICLR 2022, section 3, https://arxiv.org/abs/2108.12409
    """

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 4 or input_shape[1] is None:
            raise ValueError(
                "`inputs` must have the axes (batch, heads, steps, steps) and a known number of "
                f"heads, received the shape {tuple(input_shape)}: "
                "pass the layer to an attention as its `position`."
            )

    def call(self, inputs: Any) -> Any:
        bias = self.bias(inputs, backend.shape(inputs)[-1])
        return ops.cast(ops.add(at_least_float32(inputs), bias), self.compute_dtype)

    def bias(self, query: Any, steps: Any) -> Any:
        positions = ops.arange(steps, dtype="float32")
        return _linear_bias(query, ops.abs(positions[:, None] - positions)[None])

    def step_bias(self, query: Any, distance: Any) -> Any:
        return _linear_bias(query, ops.cast(distance, "float32"))


def _linear_bias(query: Any, distance: Any) -> Any:
    """Returns biases `(B, H, T, S)` for a query `(B, H, ...)` and distances `(B, T, S)`."""
    heads = query.shape[1]
    slopes = 2.0 ** (ops.arange(1, heads + 1, dtype="float32") * (-8.0 / heads))
    return -slopes[:, None, None] * distance[:, None]
