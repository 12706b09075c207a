"""Monotonic attention with additive scores."""

from typing import Any

import keras

from keras_seq.layers.attention.bahdanau_attention import BahdanauAttention
from keras_seq.layers.attention.monotonic import MonotonicAttention
from keras_seq.layers.internal.weight_arguments import BiasArguments


@keras.saving.register_keras_serializable(package="keras_seq")
class BahdanauMonotonicAttention(BiasArguments, MonotonicAttention):
    """Monotonic attention with the scores of `BahdanauAttention` (Raffel et al., 2017).

    Each target step scans the source from the position of the previous step, and never goes back:

        e[b, t, s] = v . tanh(W_q query[b, t] + W_v value[b, s]) + r
        p[b, t, s] = sigmoid(e[b, t, s])
        a[b, t]    = monotonic_attention(p[b, t], a[b, t - 1])
        c[b, t]    = sum over s of a[b, t, s] * value[b, s]

    Use it where source and target have the same order, as in speech and transliteration. Target
    steps run one after another, because each needs the weights of the step before.

    Shapes, call arguments, outputs and masks are those of `BahdanauAttention`, but the padding of
    `query` must be at its end, and each row of the weights sums to at most 1. The rest is the
    probability that attention moved past the last step, where it stays.

    Args:
        units, normalize, use_bias, kernel_initializer, kernel_regularizer, bias_initializer,
            bias_regularizer: As in `BahdanauAttention`. They do not concern r.
        sigmoid_noise: Float, the standard deviation of normal noise on e in training, which pushes
            p to 0 or 1. The paper uses 1. Defaults to 0.
        score_bias_init: Float, the initial value of the learned scalar r. The paper uses -1 to -4,
            lower for longer sources. Defaults to 0.
        mode: "parallel", "recursive" or "hard", as in `monotonic_attention`. Train with "parallel",
            the default; decode with it or with "hard", where p is 1 if e > 0 and otherwise 0.
        seed: Optional integer, the random seed of the noise.

    Raises:
        ValueError: If `units` is not a positive integer, `sigmoid_noise` is negative, `mode` or a
            feature axis is unknown, or a call argument has the wrong shape or dtype.

    Example:

    >>> attention = BahdanauMonotonicAttention(units=8, score_bias_init=-1.0)
    >>> context, weights = attention(keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Raffel et al., 2017, sections 2.2 to 2.4, https://arxiv.org/abs/1704.00784
    """

    parts = ("additive",)

    def __init__(
        self, units: int, normalize: bool = False, use_bias: bool | None = None, **kwargs: Any
    ) -> None:
        super().__init__(use_bias=normalize if use_bias is None else use_bias, **kwargs)
        self.units = units
        self.normalize = normalize
        self.additive = BahdanauAttention(
            units,
            normalize,
            **self.kernel_arguments(),
            **self.bias_arguments(),
            dtype=self.dtype_policy,
            name="additive",
        )

    def _scorer(self) -> BahdanauAttention:
        return self.additive
