"""Multiplicative attention."""

import keras
from keras import ops

from keras_seq.layers.internal.attention_scores import (
    additive_scores,
    attend_to,
    check_call,
    check_dropout,
    check_features,
    draw_noise,
)
from keras_seq.layers.internal.scaled_dot_product import zero_padding

# Shape letters: B batch, T target steps, S source steps, U units.

SCORES = ("dot", "scaled", "general", "concat")


@keras.saving.register_keras_serializable(package="keras_seq")
class LuongAttention(keras.layers.Layer):
    """Global attention with the scores of Luong et al. (2015).

        "dot":     e[b, t, s] = query[b, t] . value[b, s]
        "scaled":  e[b, t, s] = query[b, t] . value[b, s] / sqrt(D_q)
        "general": e[b, t, s] = query[b, t] . (W value[b, s])
        "concat":  e[b, t, s] = v . tanh(W [query[b, t]; value[b, s]])

        a[b, t] = softmax over the unmasked s of e[b, t]
        c[b, t] = sum over s of a[b, t, s] * value[b, s]

    `keras.layers.Attention` has the first score only, so it cannot compare
    vectors of different widths. What a score needs of the source alone,
    `project` computes once and `attend` uses at every step of a decoder, for
    any number of hypotheses without copies, since the beam can stand in the
    place of T.

    Shapes: B batch, T target steps, S source steps, D_q query features,
    D_v value features, U units.

    Args:
        score: One of "dot", "scaled", "general", "concat". Defaults to
            "general", the best of them in the paper.
        units: Positive integer, the width U of v. For "concat" only.
        dropout: Float in [0, 1), the share of attention weights dropped
            while training. Defaults to 0.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        query: Float tensor `(B, T, D_q)`, decoder states.
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        query_mask: Optional bool tensor `(B, T)`. Filled in by Keras from
            `query` when not given.
        value_mask: Optional bool tensor `(B, S)`, True where the source is
            real. Filled in by Keras from `value` when not given.
        training: Whether to apply dropout.

    Returns:
        context: Tensor `(B, T, D_v)` in the compute dtype.
        weights: Tensor `(B, T, S)` in the compute dtype. Exactly 0 on masked
            positions, and each row sums to 1 (before dropout). A row whose
            source is wholly masked is all 0, and so is its context: never
            NaN.

    Masks: both outputs carry the mask of `query`; `value_mask` ends here.
    What a masked position holds, NaN included, reaches neither the outputs
    nor the gradients.

    Raises:
        ValueError: At construction if `score` is none of the four, `units` is
            missing with "concat" or given with another score, or `dropout` is
            outside [0, 1); at build if the feature axis of `query` or `value`
            is unknown, or they differ with "dot" or "scaled"; at call if an
            argument has other axes, another width, no floats, or a mask of
            another shape or dtype.

    Example:

    >>> attention = LuongAttention("general")
    >>> context, weights = attention(
    ...     keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Luong, Pham and Manning, "Effective Approaches to Attention-based
        Neural Machine Translation", EMNLP 2015, section 3.1,
        https://arxiv.org/abs/1508.04025
    """

    def __init__(self, score="general", units=None, dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        if score not in SCORES:
            raise ValueError(f"`score` must be one of {', '.join(SCORES)}, received {score!r}.")
        if score == "concat" and (not isinstance(units, int) or units < 1):
            raise ValueError(
                f'With score="concat" `units` must be a positive integer, received {units!r}.'
            )
        if score != "concat" and units is not None:
            raise ValueError(
                f"`units` is the width of the concat score, received units={units!r} with "
                f'score={score!r}: leave it out or use score="concat".'
            )
        check_dropout(dropout)
        self.score = score
        self.units = units
        self.dropout = dropout
        self.seed = seed
        self.supports_masking = True
        self.dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape):
        query_features, value_features = check_features(query_shape, value_shape)
        if self.score in ("dot", "scaled") and query_features != value_features:
            raise ValueError(
                f"With score={self.score!r} query and value must have equally many features, "
                f"received {query_features} and {value_features}: "
                'use score="general" for different widths.'
            )
        self.features = query_features, value_features
        if self.score == "general":
            self.kernel = self.add_weight(
                name="kernel",
                shape=(value_features, query_features),
                initializer="glorot_uniform",
            )
        if self.score == "concat":
            self.query_kernel = self.add_weight(
                name="query_kernel",
                shape=(query_features, self.units),
                initializer="glorot_uniform",
            )
            self.value_kernel = self.add_weight(
                name="value_kernel",
                shape=(value_features, self.units),
                initializer="glorot_uniform",
            )
            limit = (6 / (self.units + 1)) ** 0.5  # Glorot's, for a column of a matrix
            self.score_vector = self.add_weight(
                name="score_vector",
                shape=(self.units,),
                initializer=keras.initializers.RandomUniform(-limit, limit),
            )

    def call(self, query, value, query_mask=None, value_mask=None, training=None):
        check_call(self.features, query, value, query_mask, value_mask)
        query = zero_padding(query, query_mask)
        projected = self.project(value, value_mask)
        noise = self.draw_noise(ops.shape(query)[1], value, training)
        return self.attend(query, **projected, value_mask=value_mask, noise=noise)

    def project(self, value, value_mask=None):
        """What `attend` needs of a source, computed once.

        Args:
            value: Float tensor `(B, S, D_v)`.
            value_mask: Optional bool tensor `(B, S)`.

        Returns:
            Dict of `key` `(B, S, ...)` and `value` `(B, S, D_v)`, both 0 on
            masked positions.
        """
        value = zero_padding(ops.cast(value, self.compute_dtype), value_mask)
        key = value
        if self.score == "scaled":
            key = value * ops.cast(self.features[0] ** -0.5, value.dtype)
        if self.score == "general":
            key = ops.matmul(value, self.kernel)  # (B, S, D_q)
            # On torch, Keras computes products of float64 in float32.
            key = ops.cast(key, value.dtype)
        if self.score == "concat":
            key = ops.matmul(value, self.value_kernel)  # (B, S, U)
        return {"key": key, "value": value}

    def attend(self, query, key, value, value_mask=None, noise=None):
        """Attention to what `project` made. Draws no random numbers.

        Args:
            query: Float tensor `(B, T, D_q)`; while decoding T is the beam.
            key: Tensor `(B, S, ...)`.
            value: Tensor `(B, S, D_v)`.
            value_mask: Optional bool tensor `(B, S)`.
            noise: Optional tensor `(B, T, S)` from `draw_noise`.

        Returns:
            As the layer's call.
        """
        return attend_to(self.scores(query, key), value, value_mask, noise)

    def scores(self, query, key):
        """e `(B, T, S)` of `query` `(B, T, D_q)` and the `key` that `project` made."""
        if self.score == "concat":
            query = ops.matmul(query, self.query_kernel)  # (B, T, U)
            return additive_scores(query, key, ops.convert_to_tensor(self.score_vector))
        return ops.einsum("btu,bsu->bts", query, key)

    def draw_noise(self, steps, value, training=None):
        """The dropout of `steps` rows of weights, for `attend`.

        Args:
            steps: Integer or scalar tensor T.
            value: Tensor `(B, S, D_v)`, for its shape.
            training: Whether to apply dropout.

        Returns:
            Tensor `(B, T, S)`, or None where nothing is dropped.
        """
        return draw_noise(self.dropout_layer, steps, value, training)

    def compute_mask(self, query, mask=None):
        return None if mask is None else (mask, mask)

    def get_config(self):
        return {
            **super().get_config(),
            "score": self.score,
            "units": self.units,
            "dropout": self.dropout,
            "seed": self.seed,
        }
