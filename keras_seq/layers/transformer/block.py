"""Base of the encoder and decoder blocks of the Transformer."""

from typing import Any

from keras_seq.layers.attention.multi_head_self_attention import MultiHeadSelfAttention
from keras_seq.layers.internal.adaptable_layer import AdaptableLayer
from keras_seq.layers.internal.configured_layer import serialize_argument
from keras_seq.layers.internal.residual import Residual
from keras_seq.layers.internal.weight_arguments import WeightArguments
from keras_seq.layers.positions.attention_position import AttentionPosition
from keras_seq.layers.transformer.feed_forward import FeedForward


class TransformerBlock(AdaptableLayer, WeightArguments):
    """Abstract block: attentions and a feed-forward network, each with a residual.

    The arguments are those of `TransformerEncoderBlock`. A subclass makes the parts, because the
    order in which Keras meets them is the order of the weights.
    """

    def __init__(
        self,
        num_heads: int,
        feedforward_units: int,
        activation: str = "relu",
        norm: str = "pre",
        seed: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        position: AttentionPosition | None = None,
        normalization: str = "layer",
        layer_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.feedforward_units = feedforward_units
        self.activation = activation
        self.norm = norm
        self.seed = seed
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.normalization = normalization
        self.layer_dropout = layer_dropout
        # Stores the config, because two references to a layer rename its weights in saved files.
        self.position = serialize_argument(position)

    def _make_self_attention(self, name: str, causal: bool, position: Any, seed: Any) -> Any:
        return MultiHeadSelfAttention(
            self.num_heads,
            causal=causal,
            dropout=self.attention_dropout,
            seed=seed,
            position=position,
            **self.weight_arguments(),
            dtype=self.dtype_policy,
            name=name,
        )

    def _make_feed_forward(self, seed: int | None) -> FeedForward:
        return FeedForward(
            self.feedforward_units,
            activation=self.activation,
            dropout=self.activation_dropout,
            seed=seed,
            **self.weight_arguments(),
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def _make_residual(self, name: str, seed: int | None) -> Residual:
        return Residual(
            self.norm,
            self.dropout,
            seed,
            self.normalization,
            self.layer_dropout,
            dtype=self.dtype_policy,
            name=name,
        )

    def _apply_feed_forward(self, x: Any, training: bool | None = None) -> Any:
        return self.feed_forward_residual.around(
            lambda x: self.feed_forward(x, training=training), x, training
        )
