"""Multi-head attention of one sequence to another."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import STEPS, check_attention_mask, check_call, known_features
from keras_seq.layers.internal.multi_head_attention import MultiHeadAttention
from keras_seq.layers.internal.scaled_dot_product import (
    join_biases,
    padding_bias,
    pair_bias,
    query_has_keys,
    zero_padding,
)
from keras_seq.layers.positions.rotary_position import RotaryPosition


@keras.saving.register_keras_serializable(package="keras_seq")
class MultiHeadCrossAttention(MultiHeadAttention):
    """Multi-head attention from a query sequence to a value sequence.

        Q = query W_q + b_q;  K, V = value W_kv + b_kv
        head_h = softmax(Q_h K_h^T / sqrt(D_k) + mask) V_h
        y      = concat(head_1 .. head_H) W_o + b_o

    In a decoder, `project` computes the keys and values of a source once and `attend` uses them at
    each step, which `keras.layers.MultiHeadAttention` cannot do. `attend` takes the hypotheses of a
    beam in place of T, without copies of the source. The softmax is computed in float32.
    `quantize` and `enable_lora` change all kernels, as in `keras.layers.Dense`.

    Shapes: B batch, T query steps, S value steps, D query and output features, E value features,
    H heads, D_k and D_v sizes of a head's keys and values.

    Args:
        num_heads: Positive integer H. It must divide D unless `key_size` is set.
        position: None, or a `RotaryPosition`, which rotates the queries and keys of each head, so
            that a query at t finds keys near t. It fits sequences that correspond in order, such
            as words and their pronunciations.
        dropout, seed: Dropout rate of the attention weights, in [0, 1), and its random seed.
        key_size, value_size: Positive integers D_k and D_v. D_k defaults to D / H, D_v to D_k.
        use_bias: Whether to add the biases b. Defaults to True.
        kernel_initializer, kernel_regularizer: Of the matrices W. Default to "glorot_uniform", with
            half of its variance for W_q, and none.
        bias_initializer, bias_regularizer: Of the biases b. Default to "zeros" and none.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, E)`.
        value_mask: Optional bool tensor `(B, S)`, True at real steps; by default that of `value`.
        return_weights: Whether to return the attention weights too.
        training: Whether to apply dropout.
        attention_mask: Optional bool tensor `(B, T, S)`, True where a query may attend to a step of
            `value`. `value_mask` applies too.

    Returns:
        outputs: Tensor `(B, T, D)` in the compute dtype.
        weights: With `return_weights=True`, tensor `(B, H, T, S)` in float32 or float64, exactly 0
            on masked steps. Each row sums to 1 before dropout. The weights of a query that sees
            no real step are 0.

    Masks: the mask of `query` passes through. A masked step of `value`, even if it holds NaN,
    changes neither outputs nor gradients.

    Raises:
        ValueError: If a size is not a positive integer, `dropout` is outside [0, 1), `position` is
            another layer, `num_heads` does not divide D and `key_size` is not set, D or E is
            unknown, or a call argument has the wrong shape or dtype.

    Example:

    >>> attention = MultiHeadCrossAttention(num_heads=2)
    >>> tuple(attention(keras.ops.ones((3, 5, 8)), keras.ops.ones((3, 7, 6))).shape)
    (3, 5, 8)

    Reference:
        Vaswani et al., 2017, section 3.2, https://arxiv.org/abs/1706.03762
    """

    parts = ("query_projection", "key_value_projection", "output_projection")

    def __init__(
        self, num_heads: int, position: RotaryPosition | None = None, **kwargs: Any
    ) -> None:
        super().__init__(num_heads, **kwargs)
        if position is not None and not isinstance(position, RotaryPosition):
            raise ValueError(
                f"`position` must be None or a `RotaryPosition`, received {position!r}: other "
                "positions are for self-attention."
            )
        self.position = position

    def build(self, query_shape: Any, value_shape: Any) -> None:
        self.head_sizes = self._head_sizes("query", query_shape)
        features = query_shape[-1]
        value_features = known_features("value", value_shape, STEPS)
        self.features = features, value_features
        keys, values = (self.num_heads * size for size in self.head_sizes)
        if self.kernel_initializer == "glorot_uniform":
            # Half of Glorot's variance in queries and keys keeps the first scores small.
            self.query_projection.kernel_initializer = {
                "class_name": "VarianceScaling",
                "config": {"scale": 0.5, "mode": "fan_avg", "distribution": "uniform"},
            }
        self.query_projection.build_sizes(features, keys)
        self.key_value_projection.build_sizes(value_features, keys + values)
        self.output_projection.build_sizes(values, features)
        if self.position is not None:
            self.position.build_heads(self.num_heads, *self.head_sizes)

    def call(
        self,
        query: Any,
        value: Any,
        value_mask: Any = None,
        return_weights: bool = False,
        training: bool | None = None,
        attention_mask: Any = None,
    ) -> Any:
        check_call(self.features, query, value, value_mask=value_mask)
        check_attention_mask("attention_mask", attention_mask, query, value)
        projected = self.project(value, value_mask)
        return self.attend(
            query,
            **projected,
            value_mask=value_mask,
            return_weights=return_weights,
            training=training,
            attention_mask=attention_mask,
        )

    def project(self, value: Any, value_mask: Any = None) -> dict[str, Any]:
        """Computes the keys and values of a source, once for all decoding steps.

        `value` is a float tensor `(B, S, E)`, `value_mask` an optional bool tensor `(B, S)`.
        Returns a dict of `key` `(B, H, S, D_k)` and `value` `(B, H, S, D_v)`.
        """
        value = zero_padding(ops.cast(value, self.compute_dtype), value_mask)
        key, value = self._project_heads(
            value, backend.shape(value)[:2], self.key_value_projection, self.head_sizes
        )
        return {"key": self._rotate(key), "value": value}

    def attend(
        self,
        query: Any,
        key: Any,
        value: Any,
        value_mask: Any = None,
        return_weights: bool = False,
        training: bool | None = None,
        position: Any = None,
        attention_mask: Any = None,
    ) -> Any:
        """Attends to the keys and values of a source, like `call`.

        `query` is a float tensor `(B, T, D)`; while decoding, T is the beam, so `attention_mask`
        is `(B, K, S)` for the current step. `key` and `value` are from `project`. `position` is the
        position of all queries, an integer scalar tensor; by default query t is at position t.
        """
        key_size = self.head_sizes[0]
        lengths = backend.shape(query)[:2]
        (query,) = self._project_heads(query, lengths, self.query_projection, (key_size,))
        query = self._rotate(query * ops.cast(key_size**-0.5, query.dtype), position)
        padding = None if value_mask is None else padding_bias(value_mask)
        pairs = None if attention_mask is None else pair_bias(attention_mask)
        bias = join_biases([padding, pairs])
        has_keys = None if bias is None else query_has_keys(bias)
        return self._attend(query, key, value, bias, has_keys, lengths, return_weights, training)

    def _rotate(self, heads: Any, position: Any = None) -> Any:
        return heads if self.position is None else self.position.rotate(heads, position)
