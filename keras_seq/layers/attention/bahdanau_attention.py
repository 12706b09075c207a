"""Additive attention."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.checks import check_positive
from keras_seq.layers.internal.single_head_attention import DroppingAttention, additive_scores
from keras_seq.layers.internal.weight_arguments import BiasArguments


@keras.saving.register_keras_serializable(package="keras_seq")
class BahdanauAttention(BiasArguments, DroppingAttention):
    """Additive attention with learned projections (Bahdanau et al., 2015).

    Scores each source step against each query with a small network, and returns the mean of the
    source weighted by the softmax of the scores:

        e[b, t, s] = v . tanh(W_q query[b, t] + W_v value[b, s])
        a[b, t]    = softmax over the unmasked s of e[b, t]
        c[b, t]    = sum over s of a[b, t, s] * value[b, s]

    `keras.layers.AdditiveAttention` has neither W_q nor W_v, so its queries and values must have
    the same width. In a decoder, `project` computes W_v value once and `attend` uses it at each
    step. `attend` takes the hypotheses of a beam in place of T, without copies of the source.

    Shapes: B batch, T target steps, S source steps, D_q query features, D_v value features,
    U units.

    Args:
        units: Positive integer U, the width of the space in which queries and values are compared.
        normalize: Whether to replace v by g v / |v| with a learned scalar g (weight
            normalization).
        use_bias: Whether to add a learned bias inside the tanh. Defaults to `normalize`.
        kernel_initializer, kernel_regularizer: Of W_q, W_v and v. Default to "glorot_uniform" and
            none.
        bias_initializer, bias_regularizer: Of the bias. Default to "zeros" and none.
        dropout, seed: Dropout rate of the attention weights, in [0, 1), and its random seed.

    Call arguments:
        query: Float tensor `(B, T, D_q)`, decoder states.
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        query_mask, value_mask: Optional bool tensors `(B, T)` and `(B, S)`, True where a step is
            real. Default to the Keras masks of `query` and `value`.
        training: Whether to apply dropout.

    Returns:
        context: Tensor `(B, T, D_v)` in the compute dtype.
        weights: Tensor `(B, T, S)` in the compute dtype, exactly 0 on masked steps. Each row sums
            to 1 before dropout. If the whole source is masked, weights and context are 0.

    Masks: both outputs carry the mask of `query`. A masked step of `query` or `value`, even if it
    holds NaN, changes neither outputs nor gradients of other steps.

    Raises:
        ValueError: If `units` is not a positive integer, `dropout` is outside [0, 1), a feature
            axis is unknown, or a call argument has the wrong shape or dtype.

    Example:

    >>> attention = BahdanauAttention(units=8)
    >>> context, weights = attention(keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align and
        Translate", ICLR 2015, appendix A.1.2, https://arxiv.org/abs/1409.0473; Salimans and
        Kingma, "Weight Normalization", 2016, https://arxiv.org/abs/1602.07868
    """

    parts = ("query_projection", "value_projection")

    def __init__(
        self, units: int, normalize: bool = False, use_bias: bool | None = None, **kwargs: Any
    ) -> None:
        super().__init__(use_bias=normalize if use_bias is None else use_bias, **kwargs)
        check_positive(units=units)
        self.units = units
        self.normalize = normalize
        self.query_projection = self._projection("query_projection")
        self.value_projection = self._projection("value_projection")

    def build(self, query_shape: Any, value_shape: Any) -> None:
        super().build(query_shape, value_shape)
        self._build_additive_projections(self.units)
        self._add_score_vector(self.units)
        if self.normalize:
            self._add_scalar("score_scale", self.units**-0.5)
        self._add_bias("score_bias", (self.units,))

    def _key(self, value: Any) -> Any:
        key = self.value_projection(value)  # (B, S, U)
        return key if self.score_bias is None else key + self.score_bias

    def scores(self, query: Any, key: Any) -> Any:
        vector = ops.convert_to_tensor(self.score_vector)
        if self.normalize:
            vector = self.score_scale * vector * ops.rsqrt(ops.sum(ops.square(vector)))
        return additive_scores(self.query_projection(query), key, vector)
