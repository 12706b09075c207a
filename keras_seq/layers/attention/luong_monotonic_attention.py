"""Monotonic attention with multiplicative scores."""

from typing import Any

import keras

from keras_seq.layers.attention.luong_attention import LuongAttention
from keras_seq.layers.attention.monotonic import MonotonicAttention


@keras.saving.register_keras_serializable(package="keras_seq")
class LuongMonotonicAttention(MonotonicAttention):
    """Monotonic attention with the general score of `LuongAttention` (Raffel et al., 2017).

    Each target step scans the source from the position of the previous step, and never goes back:

        e[b, t, s] = g * query[b, t] . (W value[b, s]) + r
        p[b, t, s] = sigmoid(e[b, t, s])
        a[b, t]    = monotonic_attention(p[b, t], a[b, t - 1])
        c[b, t]    = sum over s of a[b, t, s] * value[b, s]

    This layer is cheaper than `BahdanauMonotonicAttention`, because a score is a product instead of
    a small network. Shapes, call arguments, outputs and masks are the same.

    Args:
        scale: Whether to multiply the scores by the learned scalar g, initially 1.
        kernel_initializer, kernel_regularizer: Of W, as in `LuongAttention`.
        sigmoid_noise, score_bias_init, mode, seed: As in `BahdanauMonotonicAttention`.

    Raises:
        ValueError: As for `BahdanauMonotonicAttention`.

    Example:

    >>> attention = LuongMonotonicAttention(score_bias_init=-1.0)
    >>> context, weights = attention(keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Raffel et al., 2017, sections 2.2 to 2.4, https://arxiv.org/abs/1704.00784; Luong et al.,
        2015, section 3.1, https://arxiv.org/abs/1508.04025
    """

    parts = ("general",)

    def __init__(self, scale: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale
        self.general = LuongAttention(
            "general", **self.kernel_arguments(), dtype=self.dtype_policy, name="general"
        )

    def _scorer(self) -> LuongAttention:
        return self.general

    def build(self, query_shape: Any, value_shape: Any) -> None:
        if self.scale:
            self._add_scalar("score_scale", 1.0)
        super().build(query_shape, value_shape)

    def scores(self, query: Any, key: Any) -> Any:
        scores = super().scores(query, key)
        return scores * self.score_scale if self.scale else scores
