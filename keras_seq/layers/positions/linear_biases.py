"""Attention with linear biases."""

import keras
from keras import ops

from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.positions.attention_position import AttentionPosition

# Shape letters: B batch, H heads, T and S steps, K beam, P slots of a cache.


@keras.saving.register_keras_serializable(package="keras_seq")
class LinearBiases(AttentionPosition):
    """Lowers each score by the distance of its steps, more in some heads than in others.

        scores'[h, t, s] = scores[h, t, s] - m_h |t - s|
        m_h              = 2^(-8 h / H),  h = 1 .. H

    As the `position` of `MultiHeadSelfAttention` ("ALiBi") it serves sequences
    longer than those of the training. It has no weights. The paper has it for
    causal attention; where the future is seen, it is as far away as the past.
    Where H is no power of 2 the paper's code takes its slopes from two
    sequences; here the formula holds for every H.

    Distances are taken in float32 under every dtype policy.

    Shapes: B batch, H heads, T steps.

    Call arguments:
        inputs: Float tensor `(B, H, T, T)`, scores of queries by keys.

    Returns:
        Tensor `(B, H, T, T)` in the compute dtype.

    Masks: none; scores have no padding, weights have.

    Raises:
        ValueError: At build if `inputs` has not four axes, or H is unknown.

    Example:

    >>> scores = LinearBiases()(keras.ops.zeros((1, 2, 3, 3)))
    >>> [float(x) for x in scores[0, 0, 2]]  # the first of two heads: 2^-4
    [-0.125, -0.0625, 0.0]

    Reference:
        Press, Smith and Lewis, "Train Short, Test Long: Attention with Linear
        Biases Enables Input Length Extrapolation", ICLR 2022, section 3,
        https://arxiv.org/abs/2108.12409
    """

    def build(self, input_shape):
        if len(input_shape) != 4 or input_shape[1] is None:
            raise ValueError(
                "`inputs` must have the axes (batch, heads, steps, steps), the number of heads "
                f"known, received the shape {tuple(input_shape)}: "
                "an attention takes the layer as its `position`."
            )

    def call(self, inputs):
        bias = self.bias(inputs, ops.shape(inputs)[-1])
        return ops.cast(ops.add(at_least_float32(inputs), bias), self.compute_dtype)

    def bias(self, query, steps):
        places = ops.arange(steps, dtype="float32")
        return _lowering(query, ops.abs(places[:, None] - places)[None])

    def step_bias(self, query, ago):
        return _lowering(query, ops.cast(ago, "float32"))


def _lowering(query, distance):
    """Of a query `(B, H, ...)` and distances `(B, T, S)`, the biases `(B, H, T, S)`."""
    heads = query.shape[1]
    slopes = 2.0 ** (ops.arange(1, heads + 1, dtype="float32") * (-8.0 / heads))
    return -slopes[:, None, None] * distance[:, None]
