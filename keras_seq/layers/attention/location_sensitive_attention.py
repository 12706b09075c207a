"""Additive attention that knows where it looked."""

import keras
from keras import ops

from keras_seq.layers.internal.attention_scores import (
    additive_scores,
    at_least_float32,
    check_call,
    check_dropout,
    check_features,
    draw_noise,
    masked_softmax,
)
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.shapes import reshape
from keras_seq.layers.internal.step_loop import run_steps

# Shape letters: B batch, K hypotheses, T target steps, S source steps, F filters, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class LocationSensitiveAttention(keras.layers.Layer):
    """Additive attention to content and place (Chorowski et al., 2015).

    What was looked at before, convolved along the source, takes part in the
    scores, so that attention can go on from there and tell apart places that
    look alike:

        f[b, t]    = F * a[b, t - 1]
        h[b, t, s] = W_q query[b, t] + W_v value[b, s] + W_f f[b, t, s] + d
        e[b, t, s] = v . tanh(h[b, t, s])
        a[b, t]    = softmax over the unmasked s of e[b, t]
        c[b, t]    = sum over s of a[b, t, s] * value[b, s]

    For speech above all. Keras has no such layer. The steps of a query are
    one after another, as the weights of one are needed by the next; before
    the first, a is 0.

    Shapes: B batch, T target steps, S source steps, D_q query features,
    D_v value features, U units.

    Args:
        units: Positive integer, the width U of the comparison space.
        filters: Positive integer, how many convolutions F there are.
            Defaults to 32.
        kernel_size: Positive integer, how many steps of the source each of
            them sees. Defaults to 31.
        cumulative: Whether they see the sum of all earlier weights in place
            of the last ones (Shen et al., 2018). Defaults to False.
        smooth: Whether sigmoid(e) takes the place of exp(e) in the softmax,
            so that many places can be looked at (section 2.3). Defaults to
            False.
        dropout: Float in [0, 1), the share of attention weights dropped
            while training; the next step sees them all. Defaults to 0.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        query: Float tensor `(B, T, D_q)`, decoder states. Padding comes after
            the real steps.
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
    nor the gradients, also not through the convolution.

    Raises:
        ValueError: At construction if `units`, `filters` or `kernel_size` is
            not a positive integer or `dropout` is outside [0, 1); at build if
            the feature axis of `query` or `value` is unknown; at call if an
            argument has other axes, another width, no floats, or a mask of
            another shape or dtype.

    Example:

    >>> attention = LocationSensitiveAttention(units=8, filters=4, kernel_size=3)
    >>> context, weights = attention(
    ...     keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Chorowski, Bahdanau, Serdyuk, Cho and Bengio, "Attention-Based Models
        for Speech Recognition", NeurIPS 2015, sections 2.1 to 2.3,
        https://arxiv.org/abs/1506.07503; Shen et al., "Natural TTS Synthesis
        by Conditioning WaveNet on Mel Spectrogram Predictions", 2018, section
        2.2, https://arxiv.org/abs/1712.05884
    """

    def __init__(
        self,
        units,
        filters=32,
        kernel_size=31,
        cumulative=False,
        smooth=False,
        dropout=0.0,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, size in (("units", units), ("filters", filters), ("kernel_size", kernel_size)):
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {size!r}.")
        check_dropout(dropout)
        self.units = units
        self.filters = filters
        self.kernel_size = kernel_size
        self.cumulative = cumulative
        self.smooth = smooth
        self.dropout = dropout
        self.seed = seed
        self.supports_masking = True
        self.dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape):
        query_features, value_features = check_features(query_shape, value_shape)
        self.features = query_features, value_features
        limit = (6 / (self.units + 1)) ** 0.5  # Glorot's, for a column of a matrix
        for name, shape, initializer in (
            ("query_kernel", (query_features, self.units), "glorot_uniform"),
            ("value_kernel", (value_features, self.units), "glorot_uniform"),
            ("location_filters", (self.kernel_size, 1, self.filters), "glorot_uniform"),
            ("location_kernel", (self.filters, self.units), "glorot_uniform"),
            ("score_vector", (self.units,), keras.initializers.RandomUniform(-limit, limit)),
            ("score_bias", (self.units,), "zeros"),
        ):
            setattr(self, name, self.add_weight(name=name, shape=shape, initializer=initializer))

    def call(self, query, value, query_mask=None, value_mask=None, training=None):
        check_call(self.features, query, value, query_mask, value_mask)
        query = zero_padding(query, query_mask)
        context, weights, _ = self.attend_steps(
            query,
            **self.project(value, value_mask),
            state=self.initial_state(value),
            value_mask=value_mask,
            noise=self.draw_noise(ops.shape(query)[1], value, training),
        )
        return context, weights

    def initial_state(self, value):
        """What was looked at of `value` `(B, S, D_v)` before the first step: 0, `(B, S)`."""
        return ops.zeros_like(value[..., 0], dtype=self.compute_dtype)

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
        return {"key": ops.matmul(value, self.value_kernel) + self.score_bias, "value": value}

    def attend(self, query, key, value, state, value_mask=None, noise=None):
        """One step, of one query or of several hypotheses. Draws no random numbers.

        Args:
            query: Float tensor `(B, K, D_q)`, hypotheses side by side.
            key: Tensor `(B, S, U)` from `project`.
            value: Tensor `(B, S, D_v)` from `project`.
            state: Tensor `(B, K, S)`, the weights that the convolution sees.
            value_mask: Optional bool tensor `(B, S)`.
            noise: Optional tensor `(B, K, S)` from `draw_noise`.

        Returns:
            context: Tensor `(B, K, D_v)`.
            weights: Tensor `(B, K, S)`.
            state: The new state.
        """
        query = ops.matmul(query, self.query_kernel)
        weights, state = self._align(query, key, state, value_mask)
        context, weights = _read(weights, value, noise)
        return context, weights, state

    def attend_steps(self, query, key, value, state, value_mask=None, noise=None):
        """Steps one after the other.

        Args:
            query: Float tensor `(B, T, D_q)`.
            state: Tensor `(B, S)`, the weights that the first step's
                convolution sees.
            key, value, value_mask, noise: As in `attend`, T in the place of K.

        Returns:
            context: Tensor `(B, T, D_v)`.
            weights: Tensor `(B, T, S)`.
            state: Tensor `(B, S)`, the state after the last step.
        """

        def step(query, state):
            query, state = ops.expand_dims(query, 1), ops.expand_dims(state, 1)
            weights, state = self._align(query, key, state, value_mask)
            return ops.squeeze(weights, 1), ops.squeeze(state, 1)

        query = ops.matmul(query, self.query_kernel)  # (B, T, U)
        weights, state = run_steps(step, query, state, self.dtype_policy)
        return *_read(weights, value, noise), state

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

    def _align(self, query, key, state, value_mask):
        """Weights and new state, both `(B, K, S)`, of queries that are projected already."""
        batch, hypotheses, steps = ops.shape(state)
        # Padding is where nothing was looked at, whatever a state that was given says.
        seen = state
        if value_mask is not None:
            seen = ops.where(ops.expand_dims(value_mask, 1), state, ops.zeros((), state.dtype))
        # (B * K, S, F)
        located = ops.conv(
            reshape(seen, (batch * hypotheses, steps, 1)),
            self.location_filters,
            padding="same",
            data_format="channels_last",
        )
        located = ops.matmul(located, self.location_kernel)
        located = reshape(located, (batch, hypotheses, steps, self.units))  # (B, K, S, U)
        scores = additive_scores(query, key, ops.convert_to_tensor(self.score_vector), located)
        if self.smooth:
            scores = ops.log_sigmoid(at_least_float32(scores))
        weights = ops.cast(masked_softmax(scores, value_mask), self.compute_dtype)
        return weights, seen + weights if self.cumulative else weights

    def compute_mask(self, query, mask=None):
        return None if mask is None else (mask, mask)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "cumulative": self.cumulative,
            "smooth": self.smooth,
            "dropout": self.dropout,
            "seed": self.seed,
        }


def _read(weights, value, noise):
    """Context `(B, T, D_v)` and the weights `(B, T, S)` that it was read with."""
    if noise is not None:
        weights = weights * ops.cast(noise, weights.dtype)
    return ops.matmul(weights, value), weights
