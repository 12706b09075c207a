"""Monotonic attention with additive scores."""

import keras

from keras_seq.layers.attention.bahdanau_attention import BahdanauAttention
from keras_seq.layers.attention.monotonic import MonotonicAttention

# Shape letters: B batch, T target steps, S source steps, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class BahdanauMonotonicAttention(MonotonicAttention):
    """Attention that never goes back, with the scores of Bahdanau (Raffel et al., 2017).

    Every step looks at places from where the step before looked on:

        e[b, t, s] = v . tanh(W_q query[b, t] + W_v value[b, s]) + r
        p[b, t, s] = sigmoid(e[b, t, s])
        a[b, t]    = monotonic_attention(p[b, t], a[b, t - 1])
        c[b, t]    = sum over s of a[b, t, s] * value[b, s]

    For speech, transliteration and whatever else reads its source from left
    to right. Keras has no such layer. The steps of a query are one after
    another, as the weights of one are needed by the next.

    Shapes: B batch, T target steps, S source steps, D_q query features,
    D_v value features, U units.

    Args:
        units: Positive integer, the width U of the comparison space.
        normalize: Whether to use g v / |v| + a bias in place of v, with one
            learned number g, which the paper does. Defaults to False.
        sigmoid_noise: Standard deviation of the normal noise that is added to
            e while training, so that it pays to be sure: p then comes near 0
            or 1. The paper uses 1. Defaults to 0.
        score_bias_init: What the learned number r is before training; the
            paper uses -1 to -4, lower for longer sources. Defaults to 0.
        mode: "parallel", "recursive" or "hard", as in `monotonic_attention`.
            The weights of the layer do not depend on it: train with
            "parallel", then decode with "hard", in which p is 1 where e > 0
            and else 0. Defaults to "parallel".
        seed: Optional integer, makes the noise reproducible.

    Call arguments:
        query: Float tensor `(B, T, D_q)`, decoder states. Padding comes after
            the real steps.
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        query_mask: Optional bool tensor `(B, T)`. Filled in by Keras from
            `query` when not given.
        value_mask: Optional bool tensor `(B, S)`, True where the source is
            real. Filled in by Keras from `value` when not given.
        training: Whether to add noise.

    Returns:
        context: Tensor `(B, T, D_v)` in the compute dtype.
        weights: Tensor `(B, T, S)` in the compute dtype. Exactly 0 on masked
            positions; each row sums to 1 at most, since a step may find
            nothing, and then no later one does. Where that was certain, as
            with a source that is wholly masked, row and context are 0.

    Masks: both outputs carry the mask of `query`; `value_mask` ends here.
    What a masked position holds, NaN included, reaches neither the outputs
    nor the gradients.

    Raises:
        ValueError: At construction if `units` is not a positive integer,
            `sigmoid_noise` is negative or `mode` unknown; at build if the
            feature axis of `query` or `value` is unknown; at call if an
            argument has other axes, another width, no floats, or a mask of
            another shape or dtype.

    Example:

    >>> attention = BahdanauMonotonicAttention(units=8, score_bias_init=-1.0)
    >>> context, weights = attention(
    ...     keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Raffel, Luong, Liu, Weiss and Eck, "Online and Linear-Time Attention
        by Enforcing Monotonic Alignments", ICML 2017, sections 2.2 to 2.4,
        https://arxiv.org/abs/1704.00784
    """

    def __init__(
        self,
        units,
        normalize=False,
        sigmoid_noise=0.0,
        score_bias_init=0.0,
        mode="parallel",
        seed=None,
        **kwargs,
    ):
        super().__init__(sigmoid_noise, score_bias_init, mode, seed, **kwargs)
        self.units = units
        self.normalize = normalize
        self.additive = BahdanauAttention(
            units, normalize=normalize, dtype=self.dtype_policy, name="additive"
        )

    def _build_scores(self, query_shape, value_shape):
        self.additive.build(query_shape, value_shape)

    def _scores(self, query, key):
        return self.additive.scores(query, key)

    def project(self, value, value_mask=None):
        """What `attend` needs of a source, computed once.

        Args:
            value: Float tensor `(B, S, D_v)`.
            value_mask: Optional bool tensor `(B, S)`.

        Returns:
            Dict of `key` `(B, S, U)` and `value` `(B, S, D_v)`, the latter 0
            on masked positions.
        """
        return self.additive.project(value, value_mask)

    def get_config(self):
        return {**super().get_config(), "units": self.units, "normalize": self.normalize}
