"""Location-sensitive attention."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import check_positive
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.shapes import reshape
from keras_seq.layers.internal.single_head_attention import (
    DroppingAttention,
    RecurrentAttention,
    additive_scores,
    masked_softmax,
)
from keras_seq.layers.internal.weight_arguments import BiasArguments


@keras.saving.register_keras_serializable(package="keras_seq")
class LocationSensitiveAttention(BiasArguments, RecurrentAttention, DroppingAttention):
    """Additive attention to content and location (Chorowski et al., 2015).

    The scores depend on the attention weights of the previous step, convolved along the source. So
    attention can move on from its last position, and can tell apart source steps that look alike:

        f[b, t]    = F * a[b, t - 1]
        h[b, t, s] = W_q query[b, t] + W_v value[b, s] + W_f f[b, t, s] + d
        e[b, t, s] = v . tanh(h[b, t, s])
        a[b, t]    = softmax over the unmasked s of e[b, t]
        c[b, t]    = sum over s of a[b, t, s] * value[b, s]

    Use it for speech above all. Target steps run one after another,
    because each needs the weights of the previous step. Before the first step, a is 0.

    Shapes, call arguments, outputs and masks are those of `BahdanauAttention`, but the padding of
    `query` must be at its end.

    Args:
        units: Positive integer U, the width of the space in which queries and values are compared.
        filters: Positive integer, the number of filters F of the convolution.
        kernel_size: Positive integer, the number of source steps that a filter spans.
        cumulative: Whether to convolve the sum of all earlier weights instead of the last weights
            (Shen et al., 2018).
        smooth: Whether to replace exp(e) by sigmoid(e) in the softmax, so that attention can
            spread over many steps (section 2.3).
        use_bias: Whether to add d. Defaults to True.
        kernel_initializer, kernel_regularizer, bias_initializer, bias_regularizer: As in
            `BahdanauAttention`, of the filters and W_f too.
        dropout, seed: As in `BahdanauAttention`. The convolution at the next step sees the weights
            before dropout.

    Raises:
        ValueError: As for `BahdanauAttention`, also for `filters` and `kernel_size`.

    Example:

    >>> attention = LocationSensitiveAttention(units=8, filters=4, kernel_size=3)
    >>> context, weights = attention(keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6)))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference:
        Chorowski, Bahdanau, Serdyuk, Cho and Bengio, "Attention-Based Models for Speech
        Recognition", NeurIPS 2015, sections 2.1 to 2.3, https://arxiv.org/abs/1506.07503; Shen et
        al., "Natural TTS Synthesis by Conditioning WaveNet on Mel Spectrogram Predictions", 2018,
        section 2.2, https://arxiv.org/abs/1712.05884
    """

    parts = ("query_projection", "value_projection", "location_projection")

    def __init__(
        self,
        units: int,
        filters: int = 32,
        kernel_size: int = 31,
        cumulative: bool = False,
        smooth: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_positive(units=units, filters=filters, kernel_size=kernel_size)
        self.units = units
        self.filters = filters
        self.kernel_size = kernel_size
        self.cumulative = cumulative
        self.smooth = smooth
        self.query_projection = self._projection("query_projection")
        self.value_projection = self._projection("value_projection")
        self.location_projection = self._projection("location_projection")

    def build(self, query_shape: Any, value_shape: Any) -> None:
        super().build(query_shape, value_shape)
        self._build_additive_projections(self.units)
        self._add_kernel("location_filters", (self.kernel_size, 1, self.filters))
        self.location_projection.build_sizes(self.filters, self.units)
        self._add_score_vector(self.units)
        self._add_bias("score_bias", (self.units,))

    def initial_state(self, value: Any) -> Any:
        return ops.zeros_like(value[..., 0], dtype=self.compute_dtype)

    def _key(self, value: Any) -> Any:
        key = self.value_projection(value)
        return key if self.score_bias is None else key + self.score_bias

    def _prepare(self, query: Any, key: Any, value_mask: Any, noise: Any) -> Any:
        return self.query_projection(query)

    def _align(self, prepared: Any, key: Any, state: Any, value_mask: Any) -> tuple[Any, Any]:
        batch, hypotheses, steps = backend.shape(state)
        if value_mask is not None:
            # The caller may pass a state with arbitrary values on padding.
            state = ops.where(ops.expand_dims(value_mask, 1), state, ops.zeros((), state.dtype))
        location = ops.conv(
            reshape(state, (batch * hypotheses, steps, 1)),
            self.location_filters,
            padding="same",
            data_format="channels_last",
        )  # (B * K, S, F)
        location = self.location_projection(location)
        location = reshape(location, (batch, hypotheses, steps, self.units))
        vector = ops.convert_to_tensor(self.score_vector)
        scores = additive_scores(prepared, key, vector, location)
        if self.smooth:
            scores = ops.log_sigmoid(at_least_float32(scores))
        weights = ops.cast(masked_softmax(scores, value_mask), self.compute_dtype)
        return weights, state + weights if self.cumulative else weights
