"""Encoder block of the Transformer."""

import keras

from keras_seq.layers.attention.multi_head_self_attention import (
    MultiHeadSelfAttention,
    serialized_position,
    with_position,
)
from keras_seq.layers.internal.residual import Residual
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.internal.shapes import fits
from keras_seq.layers.transformer.feed_forward import FeedForward

# Shape letters: B batch, T steps, D features.


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerEncoderBlock(keras.layers.Layer):
    """Self-attention and a feed-forward network, each with a residual.

        pre:   x = x + dropout(f(norm(x)))
        post:  x = norm(x + dropout(f(x)))

    for f = self-attention, then f = feed-forward. The pre-norm form trains
    without long warm-up and wants one more norm after the last block. With
    `causal` it is the block of a decoder that has no source: `call` takes a
    whole sequence at once, `step` one step at a time.

    Shapes: B batch, T steps, D features.

    Args:
        num_heads: Positive integer, a divisor of D.
        feedforward_units: Positive integer, hidden units of the feed-forward.
        dropout: Float in [0, 1), on the output of each half.
        attention_dropout: Float in [0, 1), on the attention weights.
        activation_dropout: Float in [0, 1), on the hidden units.
        activation: Name of a Keras activation, or "swiglu", "geglu" or "reglu".
        norm: `"pre"` or `"post"`.
        causal: Whether a step sees itself and earlier steps only.
        seed: Optional integer, makes the dropout reproducible.
        position: Optional layer, the `position` of the self-attention:
            `RotaryPosition`, `RelativePosition` or `LinearBiases`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True where a step is real. Filled in
            by Keras from `inputs` when not given.
        training: Whether to apply dropout.

    Returns:
        Tensor `(B, T, D)` in the compute dtype.

    Masks: the mask of `inputs` passes through. What a masked step holds, NaN
    included, reaches neither the other steps nor the gradients.

    Raises:
        ValueError: If `norm` is neither "pre" nor "post", a size or rate is out
            of range, or an activation or position is unknown; at a call as the
            parts have it.

    Example:

    >>> block = TransformerEncoderBlock(num_heads=2, feedforward_units=16)
    >>> tuple(block(keras.ops.ones((3, 5, 8))).shape)
    (3, 5, 8)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.1,
        https://arxiv.org/abs/1706.03762; Xiong et al., "On Layer
        Normalization in the Transformer Architecture", 2020,
        https://arxiv.org/abs/2002.04745
    """

    def __init__(
        self,
        num_heads,
        feedforward_units,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation="relu",
        norm="pre",
        causal=False,
        seed=None,
        position=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self._config = {
            "num_heads": num_heads,
            "feedforward_units": feedforward_units,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "activation": activation,
            "norm": norm,
            "causal": causal,
            "seed": seed,
            "position": serialized_position(position),
        }
        policy = self.dtype_policy
        seeds = split_seed(seed, 4)
        self.attention = MultiHeadSelfAttention(
            num_heads,
            causal=causal,
            dropout=attention_dropout,
            seed=seeds[0],
            position=position,
            dtype=policy,
            name="attention",
        )
        self.feed_forward = FeedForward(
            feedforward_units,
            activation=activation,
            dropout=activation_dropout,
            seed=seeds[1],
            dtype=policy,
            name="feed_forward",
        )
        self.attention_residual = Residual(
            norm, dropout, seeds[2], dtype=policy, name="attention_residual"
        )
        self.feed_forward_residual = Residual(
            norm, dropout, seeds[3], dtype=policy, name="feed_forward_residual"
        )

    def build(self, input_shape):
        for layer in (
            self.attention,
            self.feed_forward,
            self.attention_residual,
            self.feed_forward_residual,
        ):
            layer.build(input_shape)

    def call(self, inputs, mask=None, training=None):
        x = self.attention_residual.around(
            lambda x: self.attention(x, mask=mask, training=training),
            # Here too, for the residual and the norm see padding before the attention does.
            zero_padding(inputs, mask),
            training,
        )
        return self.feed_forward_residual.around(
            lambda x: self.feed_forward(x, training=training), x, training
        )

    def step(self, inputs, position, bias, cache, place=None):
        """One step of several hypotheses, for a causal block.

        Args:
            inputs: Float tensor `(B, K, D)`.
            position: Integer scalar tensor, the current step.
            bias: Float32 tensor `(B, K, L, K)`, which cache slots are the past of
                which hypothesis (`layers.beam_cache_mask`).
            cache: Dict of `key` and `value`, each `(B, H, L, K, D / H)`.
            place: Optional integer tensor `(B,)`, which of the L places of the cache is
                written; by default `position`.

        Returns:
            Outputs `(B, K, D)` and the new cache.
        """
        written = {}

        def attend_to_past(x):
            outputs, written["cache"] = self.attention.step(x, position, bias, cache, place)
            return outputs

        x = self.attention_residual.around(attend_to_past, inputs)
        return self.feed_forward_residual.around(self.feed_forward, x), written["cache"]

    def compute_output_spec(self, inputs, mask=None, training=None):
        # A model is built in a third of the time where Keras need not trace its blocks for this.
        # It does for what does not fit, and says what that is.
        if fits(inputs, self.attention.qkv_kernel):
            return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        return super().compute_output_spec(inputs, mask=mask, training=training)

    def compute_mask(self, inputs, mask=None):
        return mask

    def get_config(self):
        return {**super().get_config(), **self._config}

    @classmethod
    def from_config(cls, config):
        return cls(**with_position(config))
