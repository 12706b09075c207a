"""Multiplicative attention."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.checks import check_choice
from keras_seq.layers.internal.single_head_attention import DroppingAttention, additive_scores


@keras.saving.register_keras_serializable(package="keras_seq")
class LuongAttention(DroppingAttention):
    """Global attention with one of the scores of Luong et al. (2015).

        "dot":     e[b, t, s] = query[b, t] . value[b, s]
        "scaled":  e[b, t, s] = query[b, t] . value[b, s] / sqrt(D_q)
        "general": e[b, t, s] = query[b, t] . (W value[b, s])
        "concat":  e[b, t, s] = v . tanh(W [query[b, t]; value[b, s]])

        a[b, t] = softmax over the unmasked s of e[b, t]
        c[b, t] = sum over s of a[b, t, s] * value[b, s]

    `keras.layers.Attention` has only the dot score, so its queries and values must have the same
    width. Shapes, call arguments, outputs, masks and the use of `project` and `attend` are those of
    `BahdanauAttention`.

    Args:
        score: One of "dot", "scaled", "general" and "concat". "general" is the best in the paper.
        units: Positive integer U, the width of v. Only for "concat".
        kernel_initializer, kernel_regularizer: Of W and v, as in `BahdanauAttention`. There are no
            biases.
        dropout, seed: As in `BahdanauAttention`.

    Raises:
        ValueError: If `score` is unknown, `units` is missing with "concat" or present with another
            score, `dropout` is outside [0, 1), a feature axis is unknown, the features differ with
            "dot" or "scaled", or a call argument has the wrong shape or dtype.

    Example:

    >>> attention = LuongAttention("general")
    >>> context, weights = attention(keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Luong, Pham and Manning, "Effective Approaches to Attention-based Neural Machine
        Translation", EMNLP 2015, section 3.1, https://arxiv.org/abs/1508.04025
    """

    parts = ("projection", "query_projection", "value_projection")

    def __init__(self, score: str = "general", units: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_choice("score", score, ("dot", "scaled", "general", "concat"))
        if score == "concat" and (not isinstance(units, int) or units < 1):
            raise ValueError(
                f'With score="concat" `units` must be a positive integer, received {units!r}.'
            )
        if score != "concat" and units is not None:
            raise ValueError(
                f"`units` is the width of the concat score, received units={units!r} with "
                f'score={score!r}: leave it out or use score="concat".'
            )
        self.score = score
        self.units = units
        general, concat = score == "general", score == "concat"
        # A projection is None if the score does not use it.
        self.projection = self._projection("projection") if general else None
        self.query_projection = self._projection("query_projection") if concat else None
        self.value_projection = self._projection("value_projection") if concat else None

    def build(self, query_shape: Any, value_shape: Any) -> None:
        super().build(query_shape, value_shape)
        query_features, value_features = self.features
        if self.score in ("dot", "scaled") and query_features != value_features:
            raise ValueError(
                f"With score={self.score!r} query and value must have equally many features, "
                f"received {query_features} and {value_features}: "
                'use score="general" for different widths.'
            )
        if self.projection is not None:
            self.projection.build_sizes(value_features, query_features)
        if self.units is not None:
            self._build_additive_projections(self.units)
            self._add_score_vector(self.units)

    def _key(self, value: Any) -> Any:
        if self.score == "scaled":
            return value * ops.cast(self.features[0] ** -0.5, value.dtype)
        if self.score == "general":
            # The cast is needed because Keras on torch multiplies float64 in float32.
            return ops.cast(self.projection(value), value.dtype)  # (B, S, D_q)
        if self.score == "concat":
            return self.value_projection(value)  # (B, S, U)
        return value

    def scores(self, query: Any, key: Any) -> Any:
        if self.score == "concat":
            query = self.query_projection(query)  # (B, T, U)
            return additive_scores(query, key, ops.convert_to_tensor(self.score_vector))
        return ops.einsum("btu,bsu->bts", query, key)
