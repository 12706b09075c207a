"""Multi-head attention of a sequence to itself, with a step form for decoding."""

import keras
from keras import ops

from keras_seq.layers.attention.beam_cache import distances
from keras_seq.layers.internal.attention_scores import STEPS, check_mask, check_tensor
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.heads import check_heads, head_sizes, merge_heads, project_heads
from keras_seq.layers.internal.scaled_dot_product import (
    MASKED,
    attention_context,
    attention_weights,
    band_bias,
    fused_context,
    has_fused_attention,
    join_biases,
    padding_bias,
    query_has_keys,
    zero_padding,
)
from keras_seq.layers.positions.attention_position import AttentionPosition

# Shape letters: B batch, T steps, D features, H heads, D_k and D_v sizes of a head's keys and
# values, K beam, L steps the cache holds.


@keras.saving.register_keras_serializable(package="keras_seq")
class MultiHeadSelfAttention(keras.layers.Layer):
    """Multi-head self-attention with one fused projection and a step form.

        Q, K, V = x W_qkv + b
        head_h  = softmax(Q_h K_h^T / sqrt(D_k) + mask) V_h
        y       = concat(head_1 .. head_H) W_o + b_o

    `keras.layers.MultiHeadAttention` projects queries, keys and values one by
    one, knows no positions and has no form for one step at a time; this layer
    has all of these, with the softmax in float32.

    Shapes: B batch, T steps, D features, H heads, D_k and D_v sizes of a head's
    keys and values.

    Args:
        num_heads: Positive integer H; a divisor of D unless `key_size` is given.
        causal: Whether a step may look at itself and earlier steps only.
        dropout: Float in [0, 1), share of attention weights dropped in training.
        seed: Optional integer, makes the dropout reproducible.
        key_size: Positive integer D_k, of one head. Defaults to D / H.
        value_size: Positive integer D_v, of one head. Defaults to D_k.
        window: Positive integer, how far a step may look: at steps less than
            `window` away, of which it is one itself. Defaults to all steps.
        position: Optional layer that tells steps apart by where they stand: a
            `RotaryPosition`, a `RelativePosition` or `LinearBiases`. With none
            of them the inputs must say it, as by a `SinusoidalPosition`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True where a step is real. Filled in
            by Keras from `inputs` when not given.
        return_weights: Whether to return the attention weights too.
        training: Whether to apply dropout.

    Returns:
        outputs: Tensor `(B, T, D)` in the compute dtype.
        weights: With `return_weights=True`, tensor `(B, H, T, T)` in
            float32 at least; exactly 0 on masked steps, each row sums to 1 before dropout. A
            step that sees no real step has weights of 0.

    Masks: the mask of `inputs` passes through. What a masked step holds, NaN
    included, reaches neither the other steps nor the gradients.

    Raises:
        ValueError: At construction if a size is not a positive integer,
            `dropout` is outside [0, 1) or `position` is no such layer; at build
            if `num_heads` does not divide D and no `key_size` is given; at a
            call of inputs or a mask of another shape or dtype.

    Example:

    >>> attention = MultiHeadSelfAttention(num_heads=2, causal=True)
    >>> tuple(attention(keras.ops.ones((3, 5, 8))).shape)
    (3, 5, 8)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.2,
        https://arxiv.org/abs/1706.03762; windows: Beltagy et al., "Longformer",
        2020, section 3.1, https://arxiv.org/abs/2004.05150
    """

    def __init__(
        self,
        num_heads,
        causal=False,
        dropout=0.0,
        seed=None,
        key_size=None,
        value_size=None,
        window=None,
        position=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_heads(num_heads, key_size, value_size, dropout)
        if window is not None and (not isinstance(window, int) or window < 1):
            raise ValueError(f"`window` must be None or a positive integer, received {window!r}.")
        if position is not None and not isinstance(position, AttentionPosition):
            raise ValueError(
                "`position` must be None, a `RotaryPosition`, a `RelativePosition` or "
                f"`LinearBiases`, received {position!r}: other positions are added to the inputs."
            )
        self.num_heads = num_heads
        self.causal = causal
        self.dropout = dropout
        self.seed = seed
        self.key_size = key_size
        self.value_size = value_size
        self.window = window
        self.position = position
        self.supports_masking = True
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, input_shape):
        features = input_shape[-1]
        self.head_sizes = head_sizes(
            self.num_heads, self.key_size, self.value_size, "inputs", input_shape
        )
        keys, values = self.head_sizes
        width = self.num_heads * (2 * keys + values)
        # Variance 2 / (D + 3 D): Glorot's for the fused kernel, which makes for small first scores.
        self.qkv_kernel = self.add_weight(
            name="qkv_kernel", shape=(features, width), initializer="glorot_uniform"
        )
        self.qkv_bias = self.add_weight(name="qkv_bias", shape=(width,), initializer="zeros")
        self.output_kernel = self.add_weight(
            name="output_kernel",
            shape=(self.num_heads * values, features),
            initializer="glorot_uniform",
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(features,), initializer="zeros"
        )
        if self.position is not None:
            self.position.build_heads(self.num_heads, keys, values)

    def call(self, inputs, mask=None, return_weights=False, training=None):
        check_tensor("inputs", inputs, self.qkv_kernel.shape[0], STEPS)
        check_mask("mask", mask, inputs)
        lengths = ops.shape(inputs)[:2]
        steps = lengths[1]
        query, key, value = self._project(zero_padding(inputs, mask), lengths)
        hiding = join_biases(
            [
                None if mask is None else padding_bias(mask),
                band_bias(steps, self.causal, self.window),
            ]
        )
        # A step whose whole past or window is padding would otherwise look at padding.
        real_rows = None if mask is None else query_has_keys(hiding)
        added = None if self.position is None else self.position.bias(query, steps)
        bias = hiding if added is None else added if hiding is None else ops.add(hiding, added)

        dropping = bool(training and self.dropout)
        learning = self.position is not None and self.position.learns
        # A gradient of ours stays in an exported graph, and not every runtime reads over it: where
        # it is said that there is no training, there is none.
        weighed = return_weights or dropping or learning or training is False
        if not weighed:
            fused = added is None and has_fused_attention(query, value)
            context = (fused_context if fused else attention_context)(
                query, key, value, bias, real_rows
            )
            return self._merge(context, lengths)
        weights = attention_weights(query, key, bias, real_rows)  # (B, H, T, T)
        dropped = self.dropout_layer(ops.cast(weights, value.dtype), training=training)
        outputs = self._merge(self._read(dropped, value), lengths)
        return (outputs, weights) if return_weights else outputs

    def step(self, inputs, position, bias, cache, place=None):
        """One step of several hypotheses, with the keys and values so far in a cache.

        The cache is written and never reordered: what hypothesis k writes stays in slot k
        of a place, and `bias` says which slots are the past of which hypothesis (see
        `beam_cache_mask`). Slots lie in the order of their steps.

        Args:
            inputs: Float tensor `(B, K, D)`, the current vector of each hypothesis.
            position: Integer scalar tensor, the current step.
            bias: Float32 tensor `(B, K, L, K)`.
            cache: Dict of `key` `(B, H, L, K, D_k)` and `value` `(B, H, L, K, D_v)`.
            place: Optional integer tensor `(B,)`, which of the L places is written; by
                default `position`, where a cache has a place for each step.

        Returns:
            Outputs `(B, K, D)` and the new cache.
        """
        lengths = ops.shape(inputs)[:2]
        query, key, value = self._project(inputs, lengths, position)  # (B, H, K, D_k)
        # Of one tensor that all layers share, so that what follows from it is computed once.
        batch, beam, length, _ = ops.shape(bias)
        places = cache_places(batch, self.num_heads, position if place is None else place)
        cache = {
            name: write_step(cache[name], places, update)
            for name, update in (("key", key), ("value", value))
        }
        bias = ops.reshape(bias, (batch, beam, length * beam))
        ago = distances(bias, position)
        if self.window is not None:
            bias = ops.minimum(bias, ops.where(ago < self.window, 0.0, MASKED))
        bias = bias[:, None]
        added = None if self.position is None else self.position.step_bias(query, ago)
        if added is not None:
            bias = ops.add(bias, added)

        def by_slot(name):
            size = cache[name].shape[-1]
            return ops.reshape(cache[name], (batch, self.num_heads, length * beam, size))

        weights = attention_weights(query, by_slot("key"), bias)
        context = self._read(ops.cast(weights, value.dtype), by_slot("value"), ago)
        return self._merge(context, lengths), cache

    def _project(self, inputs, lengths, position=None):
        keys, values = self.head_sizes
        sizes = (keys, keys, values)
        if position is None:
            # Three products: of many steps, what one gives takes longer to copy apart.
            ends = [self.num_heads * keys, 2 * self.num_heads * keys]
            # By their number where that says it: Keras has a dozen operations for places.
            parts = 3 if keys == values else ends
            kernels = ops.split(ops.convert_to_tensor(self.qkv_kernel), parts, axis=1)
            biases = ops.split(ops.convert_to_tensor(self.qkv_bias), parts)
            query, key, value = (
                project_heads(inputs, lengths, self.num_heads, kernel, bias, (size,))[0]
                for kernel, bias, size in zip(kernels, biases, sizes, strict=True)
            )
        else:
            query, key, value = project_heads(
                inputs, lengths, self.num_heads, self.qkv_kernel, self.qkv_bias, sizes
            )
        query = query * ops.cast(keys**-0.5, query.dtype)
        if self.position is not None:
            query, key = (self.position.turn(part, position) for part in (query, key))
        return query, key, value

    def _read(self, weights, value, ago=None):
        """Contexts of weights `(B, H, T, S)`; at one step `(B, H, K, L * K)`."""
        context = ops.matmul(weights, value)
        if self.position is None or not self.position.learns:
            return context
        added = (
            self.position.read(weights) if ago is None else self.position.step_read(weights, ago)
        )
        return context if added is None else context + added

    def _merge(self, context, lengths):
        return merge_heads(context, lengths, self.output_kernel, self.output_bias)

    def compute_mask(self, inputs, mask=None):
        return mask

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "causal": self.causal,
            "dropout": self.dropout,
            "seed": self.seed,
            "key_size": self.key_size,
            "value_size": self.value_size,
            "window": self.window,
            "position": serialized_position(self.position),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_position(config))


def serialized_position(position):
    """A position as part of a layer's config; it is built with the layer."""
    if position is None:
        return None
    parts = keras.saving.serialize_keras_object(position)
    return {name: part for name, part in parts.items() if name != "build_config"}


def with_position(config):
    """A config with its position made of `serialized_position`."""
    position = config.get("position")
    if not isinstance(position, dict):
        return config
    return {**config, "position": keras.saving.deserialize_keras_object(position)}


def cache_places(batch, num_heads, place):
    """Where a place of every head lies in a cache `(B, H, L, K, D)`.

    Args:
        batch: Integer or scalar tensor B.
        num_heads: Integer H.
        place: Integer tensor `(B,)` or `()`.

    Returns:
        Int32 tensor `(B * H, 3)`.
    """
    sequences = ops.arange(batch * num_heads)
    rows = sequences // num_heads
    place = ops.broadcast_to(ops.cast(place, "int32"), (batch,))
    return ops.stack([rows, sequences % num_heads, ops.take(place, rows)], axis=-1)


def write_step(cache, places, update):
    """`cache` `(B, H, L, K, D)` with `update` `(B, H, K, D)` as one of its steps.

    By scatter: `slice_update` would become an XLA operation that stock model
    servers refuse to run.
    """
    beam, size = ops.shape(update)[2:]
    return ops.scatter_update(cache, places, ops.reshape(update, (-1, beam, size)))
