"""Additive attention."""

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


@keras.saving.register_keras_serializable(package="keras_seq")
class BahdanauAttention(keras.layers.Layer):
    """Additive attention with learned projections (Bahdanau et al., 2015).

    Scores every source position against every query and returns the
    score-weighted mean of the source:

        e[b, t, s] = v . tanh(W_q query[b, t] + W_v value[b, s])
        a[b, t]    = softmax over the unmasked s of e[b, t]
        c[b, t]    = sum over s of a[b, t, s] * value[b, s]

    `keras.layers.AdditiveAttention` has neither W_q nor W_v, so it cannot
    compare vectors of different widths; that is why this layer exists.
    W_v value does not depend on the query: `project` computes it once and
    `attend` uses it at every step of a decoder, for any number of hypotheses
    without copies, since the beam can stand in the place of T.

    Shapes: B batch, T target steps, S source steps, D_q query features,
    D_v value features, U units.

    Args:
        units: Positive integer, the width U of the comparison space.
        dropout: Float in [0, 1), the share of attention weights dropped
            while training. Defaults to 0.
        seed: Optional integer, makes the dropout reproducible.
        normalize: Whether to use g v / |v| + a bias in place of v, with one
            learned number g (weight normalisation). Defaults to False.

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
        ValueError: At construction if `units` is not a positive integer or
            `dropout` is outside [0, 1); at build if the feature axis of
            `query` or `value` is unknown; at call if an argument has other
            axes, another width, no floats, or a mask of another shape or
            dtype.

    Example:

    >>> attention = BahdanauAttention(units=8)
    >>> context, weights = attention(
    ...     keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly
        Learning to Align and Translate", ICLR 2015, appendix A.1.2,
        https://arxiv.org/abs/1409.0473; Salimans and Kingma, "Weight
        Normalization", 2016, https://arxiv.org/abs/1602.07868
    """

    def __init__(self, units, dropout=0.0, seed=None, normalize=False, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"`units` must be a positive integer, received {units!r}.")
        check_dropout(dropout)
        self.units = units
        self.dropout = dropout
        self.seed = seed
        self.normalize = normalize
        self.supports_masking = True
        self.dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape):
        query_features, value_features = check_features(query_shape, value_shape)
        self.features = query_features, value_features
        self.query_kernel = self.add_weight(
            name="query_kernel", shape=(query_features, self.units), initializer="glorot_uniform"
        )
        self.value_kernel = self.add_weight(
            name="value_kernel", shape=(value_features, self.units), initializer="glorot_uniform"
        )
        limit = (6 / (self.units + 1)) ** 0.5  # Glorot's, for a column of a matrix
        self.score_vector = self.add_weight(
            name="score_vector",
            shape=(self.units,),
            initializer=keras.initializers.RandomUniform(-limit, limit),
        )
        if self.normalize:
            self.score_scale = self.add_weight(
                name="score_scale",
                shape=(),
                initializer=keras.initializers.Constant(self.units**-0.5),
            )
            self.score_bias = self.add_weight(
                name="score_bias", shape=(self.units,), initializer="zeros"
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
            Dict of `key` `(B, S, U)` and `value` `(B, S, D_v)`, the latter 0
            on masked positions.
        """
        value = zero_padding(ops.cast(value, self.compute_dtype), value_mask)
        key = ops.matmul(value, self.value_kernel)
        if self.normalize:
            key = key + self.score_bias
        return {"key": key, "value": value}

    def attend(self, query, key, value, value_mask=None, noise=None):
        """Attention to what `project` made. Draws no random numbers.

        Args:
            query: Float tensor `(B, T, D_q)`; while decoding T is the beam.
            key: Tensor `(B, S, U)`.
            value: Tensor `(B, S, D_v)`.
            value_mask: Optional bool tensor `(B, S)`.
            noise: Optional tensor `(B, T, S)` from `draw_noise`.

        Returns:
            As the layer's call.
        """
        return attend_to(self.scores(query, key), value, value_mask, noise)

    def scores(self, query, key):
        """e `(B, T, S)` of `query` `(B, T, D_q)` and the `key` that `project` made."""
        query = ops.matmul(query, self.query_kernel)  # (B, T, U)
        return additive_scores(query, key, self._vector())

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

    def _vector(self):
        vector = ops.convert_to_tensor(self.score_vector)
        if not self.normalize:
            return vector
        square = ops.sum(ops.square(vector))
        return self.score_scale * vector * ops.rsqrt(square)

    def compute_mask(self, query, mask=None):
        return None if mask is None else (mask, mask)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "dropout": self.dropout,
            "seed": self.seed,
            "normalize": self.normalize,
        }
