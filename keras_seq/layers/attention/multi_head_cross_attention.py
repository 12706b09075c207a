"""Multi-head attention of one sequence to another."""

import keras
from keras import ops

from keras_seq.layers.internal.attention_scores import check_call, check_features
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.heads import check_heads, head_sizes, merge_heads, project_heads
from keras_seq.layers.internal.scaled_dot_product import (
    attention_context,
    attention_weights,
    fused_context,
    has_fused_attention,
    padding_bias,
    query_has_keys,
    zero_padding,
)

# Shape letters: B batch, T target steps, S source steps, D features, H heads, D_k and D_v sizes of
# a head's keys and values.


@keras.saving.register_keras_serializable(package="keras_seq")
class MultiHeadCrossAttention(keras.layers.Layer):
    """Multi-head attention from a query sequence to a value sequence.

        Q = query W_q + b_q;  K, V = value W_kv + b_kv
        head_h = softmax(Q_h K_h^T / sqrt(D_k) + mask) V_h
        y      = concat(head_1 .. head_H) W_o + b_o

    Keys and values depend on the source alone: `project` computes them once
    and `attend` uses them at every decoding step, for any number of
    hypotheses without copies, since the beam can stand in the place of T.

    Shapes: B batch, T query steps, S value steps, D query features (and
    output features), E value features, H heads, D_k and D_v sizes of a head's
    keys and values.

    Args:
        num_heads: Positive integer H; a divisor of D unless `key_size` is given.
        dropout: Float in [0, 1), share of attention weights dropped in training.
        seed: Optional integer, makes the dropout reproducible.
        key_size: Positive integer D_k, of one head. Defaults to D / H.
        value_size: Positive integer D_v, of one head. Defaults to D_k.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, E)`.
        value_mask: Optional bool tensor `(B, S)`, True where a step of `value`
            is real. Filled in by Keras from `value` when not given.
        return_weights: Whether to return the attention weights too.
        training: Whether to apply dropout.

    Returns:
        outputs: Tensor `(B, T, D)` in the compute dtype.
        weights: With `return_weights=True`, tensor `(B, H, T, S)` in
            float32 at least; exactly 0 on masked steps, each row sums to 1 before dropout. Where
            `value` is wholly masked the weights are 0.

    Masks: the mask of `query` passes through; `value_mask` ends here. What a
    masked step of `value` holds, NaN included, reaches neither the outputs
    nor the gradients.

    Raises:
        ValueError: At construction if a size is not a positive integer or
            `dropout` is outside [0, 1); at build if `num_heads` does not divide
            D and no `key_size` is given, or E is unknown; at a call of inputs
            or a mask of another shape or dtype.

    Example:

    >>> attention = MultiHeadCrossAttention(num_heads=2)
    >>> tuple(attention(keras.ops.ones((3, 5, 8)), keras.ops.ones((3, 7, 6))).shape)
    (3, 5, 8)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.2,
        https://arxiv.org/abs/1706.03762
    """

    def __init__(self, num_heads, dropout=0.0, seed=None, key_size=None, value_size=None, **kwargs):
        super().__init__(**kwargs)
        check_heads(num_heads, key_size, value_size, dropout)
        self.num_heads = num_heads
        self.dropout = dropout
        self.seed = seed
        self.key_size = key_size
        self.value_size = value_size
        self.supports_masking = True
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape):
        self.head_sizes = head_sizes(
            self.num_heads, self.key_size, self.value_size, "query", query_shape
        )
        features, value_features = check_features(query_shape, value_shape)
        keys, values = (self.num_heads * size for size in self.head_sizes)
        # Half of Glorot's variance for queries and keys, which makes for small first scores.
        halved = keras.initializers.VarianceScaling(0.5, mode="fan_avg", distribution="uniform")
        self.query_kernel = self.add_weight(
            name="query_kernel", shape=(features, keys), initializer=halved
        )
        self.query_bias = self.add_weight(name="query_bias", shape=(keys,), initializer="zeros")
        self.key_value_kernel = self.add_weight(
            name="key_value_kernel",
            shape=(value_features, keys + values),
            initializer="glorot_uniform",
        )
        self.key_value_bias = self.add_weight(
            name="key_value_bias", shape=(keys + values,), initializer="zeros"
        )
        self.output_kernel = self.add_weight(
            name="output_kernel", shape=(values, features), initializer="glorot_uniform"
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(features,), initializer="zeros"
        )

    def call(self, query, value, value_mask=None, return_weights=False, training=None):
        features = self.query_kernel.shape[0], self.key_value_kernel.shape[0]
        check_call(features, query, value, value_mask=value_mask)
        projected = self.project(value, value_mask)
        return self.attend(
            query,
            **projected,
            value_mask=value_mask,
            return_weights=return_weights,
            training=training,
        )

    def project(self, value, value_mask=None):
        """Keys and values of a source.

        Args:
            value: Float tensor `(B, S, E)`.
            value_mask: Optional bool tensor `(B, S)`.

        Returns:
            Dict of `key` `(B, H, S, D_k)` and `value` `(B, H, S, D_v)`.
        """
        value = zero_padding(ops.cast(value, self.compute_dtype), value_mask)
        key, value = project_heads(
            value,
            ops.shape(value)[:2],
            self.num_heads,
            self.key_value_kernel,
            self.key_value_bias,
            self.head_sizes,
        )
        return {"key": key, "value": value}

    def attend(self, query, key, value, value_mask=None, return_weights=False, training=None):
        """Attention to keys and values that `project` made.

        Args:
            query: Float tensor `(B, T, D)`; while decoding T is the beam.
            key: Tensor `(B, H, S, D_k)`.
            value: Tensor `(B, H, S, D_v)`.
            value_mask: Optional bool tensor `(B, S)`.
            return_weights: Whether to return the attention weights too.
            training: Whether to apply dropout.

        Returns:
            As the layer's call.
        """
        size = self.head_sizes[0]
        lengths = ops.shape(query)[:2]
        (query,) = project_heads(
            query, lengths, self.num_heads, self.query_kernel, self.query_bias, (size,)
        )
        query = query * ops.cast(size**-0.5, query.dtype)
        bias, real_rows = None, None
        if value_mask is not None:
            bias = padding_bias(value_mask)
            real_rows = query_has_keys(bias)
        # A gradient of ours stays in an exported graph, and not every runtime reads over it: where
        # it is said that there is no training, there is none.
        if training is not False and not (return_weights or (training and self.dropout)):
            fused = has_fused_attention(query, value)
            context = (fused_context if fused else attention_context)(
                query, key, value, bias, real_rows
            )
            return self._merge(context, lengths)
        weights = attention_weights(query, key, bias, real_rows)  # (B, H, T, S)
        dropped = self.dropout_layer(ops.cast(weights, value.dtype), training=training)
        outputs = self._merge(ops.matmul(dropped, value), lengths)
        return (outputs, weights) if return_weights else outputs

    def _merge(self, context, lengths):
        return merge_heads(context, lengths, self.output_kernel, self.output_bias)

    def compute_mask(self, query, mask=None):
        return mask

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "seed": self.seed,
            "key_size": self.key_size,
            "value_size": self.value_size,
        }
