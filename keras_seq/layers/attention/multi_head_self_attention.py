"""Multi-head attention of a sequence to itself, with a step form for decoding."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.attention.beam_cache import distances
from keras_seq.layers.internal.checks import (
    STEPS,
    check_attention_mask,
    check_mask,
    check_positive,
    check_tensor,
)
from keras_seq.layers.internal.multi_head_attention import MultiHeadAttention
from keras_seq.layers.internal.scaled_dot_product import (
    NEG_INF,
    attention_weights,
    band_bias,
    join_biases,
    padding_bias,
    pair_bias,
    query_has_keys,
    zero_padding,
)
from keras_seq.layers.internal.shapes import dense_rows
from keras_seq.layers.positions.attention_position import AttentionPosition


@keras.saving.register_keras_serializable(package="keras_seq")
class MultiHeadSelfAttention(MultiHeadAttention):
    """Multi-head self-attention with a step form for decoding.

        Q, K, V = x W_qkv + b
        head_h  = softmax(Q_h K_h^T / sqrt(D_k) + mask) V_h
        y       = concat(head_1 .. head_H) W_o + b_o

    Call the layer on whole sequences in training. In a decoder, `step` takes one step at a time and
    keeps keys and values in a cache. Compared with `keras.layers.MultiHeadAttention` the layer adds
    this step form, windows and relative positions. The softmax is computed in float32.
    `quantize` and `enable_lora` change all kernels, as in `keras.layers.Dense`.

    Shapes: B batch, T steps, D features, H heads, D_k and D_v sizes of a head's keys and values.

    Args:
        num_heads, dropout, seed, key_size, value_size, use_bias, and initializers and regularizers
            of kernels and biases: As in `MultiHeadCrossAttention`, but no variance is halved.
        causal: Whether a step attends to itself and earlier steps only. Defaults to False.
        window: Positive integer. A step attends only to steps less than `window` away, itself
            included. Defaults to no limit.
        position: Optional `RotaryPosition`, `RelativePosition` or `LinearBiases`. Without one,
            attention knows only the positions that the inputs encode, as by `SinusoidalPosition`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True at real steps; by default the Keras mask.
        return_weights: Whether to return the attention weights too.
        training: Whether to apply dropout.
        attention_mask: Optional bool tensor `(B, T, T)`, True where a step (second axis) may attend
            to another (third axis). `mask`, `causal` and `window` apply too.
        inputs_mask: The Keras mask of `inputs` if Keras passes `attention_mask` as well. Pass your
            own masks as `mask`.

    Returns:
        outputs: Tensor `(B, T, D)` in the compute dtype.
        weights: With `return_weights=True`, tensor `(B, H, T, T)` in float32 or float64, exactly 0
            on masked steps. Each row sums to 1 before dropout. The weights of a step that sees no
            real step are 0.

    Masks: the mask passes through. Masked steps, even NaN, affect neither outputs nor gradients.

    Raises:
        ValueError: If a size is not a positive integer, `dropout` is outside [0, 1), `position` is
            another layer, `num_heads` does not divide D and `key_size` is not set, or a call
            argument has the wrong shape or dtype.

    Example:

    >>> attention = MultiHeadSelfAttention(num_heads=2, causal=True)
    >>> tuple(attention(keras.ops.ones((3, 5, 8))).shape)
    (3, 5, 8)

    Reference:
        Vaswani et al., 2017, section 3.2, https://arxiv.org/abs/1706.03762; windows: Beltagy et
        al., "Longformer", 2020, section 3.1, https://arxiv.org/abs/2004.05150
    """

    parts = ("qkv_projection", "output_projection")

    def __init__(
        self,
        num_heads: int,
        causal: bool = False,
        window: int | None = None,
        position: AttentionPosition | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, **kwargs)
        check_positive(optional=True, window=window)
        if position is not None and not isinstance(position, AttentionPosition):
            raise ValueError(
                "`position` must be None, a `RotaryPosition`, a `RelativePosition` or "
                f"`LinearBiases`, received {position!r}: other positions are added to the inputs."
            )
        self.causal = causal
        self.window = window
        self.position = position

    def build(self, input_shape: Any) -> None:
        features = input_shape[-1]
        self.head_sizes = self._head_sizes("inputs", input_shape)
        key_size, value_size = self.head_sizes
        # Queries, keys and values share a kernel, so Glorot's variance is 2 / (D + 3 D). It keeps
        # the initial scores small.
        self.features = features
        projected = self.num_heads * (2 * key_size + value_size)
        self.qkv_projection.build_sizes(features, projected)
        self.output_projection.build_sizes(self.num_heads * value_size, features)
        if self.position is not None:
            self.position.build_heads(self.num_heads, key_size, value_size)

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        return_weights: bool = False,
        training: bool | None = None,
        attention_mask: Any = None,
        inputs_mask: Any = None,
    ) -> Any:
        mask = inputs_mask if mask is None else mask
        check_tensor("inputs", inputs, self.features, STEPS)
        check_mask("mask", mask, inputs)
        check_attention_mask("attention_mask", attention_mask, inputs, inputs)
        lengths = backend.shape(inputs)[:2]
        steps = lengths[1]
        query, key, value = self._project(zero_padding(inputs, mask), lengths)
        padding = None if mask is None else padding_bias(mask)
        pairs = None if attention_mask is None else pair_bias(attention_mask)
        bias = join_biases([padding, pairs, band_bias(steps, self.causal, self.window)])
        # Without `has_keys`, a step that sees no real step would attend to all steps.
        has_keys = None if padding is None and pairs is None else query_has_keys(bias)
        position_bias = None if self.position is None else self.position.bias(query, steps)
        if position_bias is not None:
            bias = position_bias if bias is None else ops.add(bias, position_bias)
        position = None if position_bias is None else self.position
        return self._attend(
            query, key, value, bias, has_keys, lengths, return_weights, training, position
        )

    def step(
        self, inputs: Any, position: Any, bias: Any, cache: dict[str, Any], write_index: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Decodes one step of K hypotheses, with the keys and values of L steps in a cache.

        The cache is written but never reordered. Hypothesis k writes to slot k of a step, and
        `bias` hides all slots but the ancestors of each hypothesis (see `beam_cache_mask`). It also
        takes the place of an `attention_mask`, which a step does not have.

        Args:
            inputs: Float tensor `(B, K, D)`, one vector per hypothesis.
            position: Integer scalar tensor, the current step.
            bias: Float32 tensor `(B, K, L, K)` from `beam_cache_mask`.
            cache: Dict of `key` `(B, H, L, K, D_k)` and `value` `(B, H, L, K, D_v)`, in the order
                of steps.
            write_index: Optional integer tensor `(B,)`, the index on the axis L to write to.
                Defaults to `position`.

        Returns:
            Outputs `(B, K, D)` and the new cache.
        """
        lengths = backend.shape(inputs)[:2]
        query, key, value = self._project(inputs, lengths, position)  # (B, H, K, D_k)
        # All layers share `bias`, so its shape is computed only once.
        batch, beam, length, _ = backend.shape(bias)
        write_index = position if write_index is None else write_index
        indices = cache_indices(batch, self.num_heads, write_index)
        cache = {
            name: write_step(cache[name], indices, update)
            for name, update in (("key", key), ("value", value))
        }
        bias = ops.reshape(bias, (batch, beam, length * beam))
        distance = distances(bias, position)
        if self.window is not None:
            bias = ops.minimum(bias, ops.where(distance < self.window, 0.0, NEG_INF))
        bias = bias[:, None]
        if self.position is not None:
            position_bias = self.position.step_bias(query, distance)
            bias = bias if position_bias is None else ops.add(bias, position_bias)

        def flat(name: str) -> Any:
            size = cache[name].shape[-1]
            return ops.reshape(cache[name], (batch, self.num_heads, length * beam, size))

        weights = ops.cast(attention_weights(query, flat("key"), bias), value.dtype)
        context = ops.matmul(weights, flat("value"))
        if self.position is not None:
            position_context = self.position.step_context_bias(weights, distance)
            context = context if position_context is None else context + position_context
        return self._merge_heads(context, lengths), cache

    def _project(self, inputs: Any, lengths: Any, position: Any = None) -> tuple[Any, Any, Any]:
        """Returns queries, keys and values. `position` is the index of a single step, else None."""
        keys, values = self.head_sizes
        sizes = (keys, keys, values)
        projection = self.qkv_projection
        if position is None and projection.quantization_mode is None:
            # For whole sequences, three products are faster than one product that is then split.
            ends = [self.num_heads * keys, 2 * self.num_heads * keys]
            # Passes a number if possible, because Keras splits at indices in a dozen operations.
            count = 3 if keys == values else ends
            kernels = ops.split(ops.convert_to_tensor(projection.kernel), count, axis=1)
            biases = [None] * 3
            if projection.bias is not None:
                biases = ops.split(ops.convert_to_tensor(projection.bias), count)
            query, key, value = (
                self._project_heads(
                    inputs, lengths, partial(dense_rows, kernel=kernel, bias=bias), (size,)
                )[0]
                for kernel, bias, size in zip(kernels, biases, sizes, strict=True)
            )
        else:
            query, key, value = self._project_heads(inputs, lengths, projection, sizes)
        query = query * ops.cast(keys**-0.5, query.dtype)
        if self.position is not None:
            query, key = (self.position.rotate(part, position) for part in (query, key))
        return query, key, value


def cache_indices(batch: Any, num_heads: int, write_index: Any) -> Any:
    """Returns scatter indices `(B * H, 3)` for writing one step to a cache `(B, H, L, K, D)`.

    `write_index` `(B,)` or `()` is the index on the axis L.
    """
    sequences = ops.arange(batch * num_heads)
    rows = sequences // num_heads
    write_index = ops.broadcast_to(ops.cast(write_index, "int32"), (batch,))
    return ops.stack([rows, sequences % num_heads, ops.take(write_index, rows)], axis=-1)


def write_step(cache: Any, indices: Any, update: Any) -> Any:
    """Writes `update` `(B, H, K, D)` into one step of `cache` `(B, H, L, K, D)`.

    It scatters, because `slice_update` becomes an XLA operation that stock model servers reject.
    """
    beam, size = backend.shape(update)[2:]
    return ops.scatter_update(cache, indices, ops.reshape(update, (-1, beam, size)))
