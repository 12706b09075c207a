"""Monotonic attention with multiplicative scores."""

from typing import Any

import keras

from keras_seq.layers.attention.luong_attention import LuongAttention
from keras_seq.layers.attention.monotonic import MonotonicAttention


@keras.saving.register_keras_serializable(package="keras_seq")
class LuongMonotonicAttention(MonotonicAttention):
    """Monotonic attention with the general score of `LuongAttention` (Raffel et al., 2017).

    Each target step scans the source from the position of the step before, and never goes back:

        e[b, t, s] = g * query[b, t] . (W value[b, s]) + r
        p[b, t, s] = sigmoid(e[b, t, s])
        a[b, t]    = monotonic_attention(p[b, t], a[b, t - 1])
        c[b, t]    = sum over s of a[b, t, s] * value[b, s]

    Cheaper than `BahdanauMonotonicAttention`: a score is a product instead of a small network.
    Keras has no such layer.

    Shapes: B batch, T target steps, S source steps, D_q query features, D_v value features.

    Args:
        scale: Whether to multiply the scores by the learned scalar g, initially 1.
        sigmoid_noise: Float, the standard deviation of normal noise on e in training, which pushes
            p to 0 or 1. The paper uses 1.
        score_bias_init: Float, the initial value of the learned scalar r. The paper uses -1 to -4,
            lower for longer sources.
        mode: "parallel", "recursive" or "hard", as in `monotonic_attention`. Train with "parallel";
            decode with it or with "hard", where p is 1 if e > 0 and otherwise 0.
        seed: Optional integer, the random seed of the noise.

    Call arguments:
        query: Float tensor `(B, T, D_q)`, decoder states, with padding at the end.
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        query_mask, value_mask: Optional bool tensors `(B, T)` and `(B, S)`, True where a step is
            real. Default to the Keras masks of `query` and `value`.
        training: Whether to add noise.

    Returns:
        context: Tensor `(B, T, D_v)` in the compute dtype.
        weights: Tensor `(B, T, S)` in the compute dtype, exactly 0 on masked steps. Each row sums
            to at most 1. The rest is the probability that attention moved past the last step,
            where it stays. If the whole source is masked, weights and context are 0.

    Masks: both outputs carry the mask of `query`. A masked step of `query` or `value`, even if it
    holds NaN, changes neither outputs nor gradients of other steps.

    Raises:
        ValueError: If `sigmoid_noise` is negative, `mode` or a feature axis is unknown, or a call
            argument has the wrong shape or dtype.

    Example:

    >>> attention = LuongMonotonicAttention(score_bias_init=-1.0)
    >>> context, weights = attention(keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Raffel, Luong, Liu, Weiss and Eck, "Online and Linear-Time Attention by Enforcing Monotonic
        Alignments", ICML 2017, sections 2.2 to 2.4, https://arxiv.org/abs/1704.00784; Luong,
        Pham and Manning, EMNLP 2015, section 3.1, https://arxiv.org/abs/1508.04025
    """

    def __init__(
        self,
        scale: bool = False,
        sigmoid_noise: float = 0.0,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(sigmoid_noise, score_bias_init, mode, seed, **kwargs)
        self.scale = scale
        self.general = LuongAttention("general", dtype=self.dtype_policy, name="general")

    def _build_scores(self, query_shape: Any, value_shape: Any) -> None:
        self.general.build(query_shape, value_shape)
        if self.scale:
            self._add_variable("score_scale", (), "ones")

    def _key(self, value: Any) -> Any:
        return self.general._key(value)

    def scores(self, query: Any, key: Any) -> Any:
        """Scores `(B, T, S)` without r."""
        scores = self.general.scores(query, key)
        return scores * self.score_scale if self.scale else scores
