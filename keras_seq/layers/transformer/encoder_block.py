"""Encoder block of the Transformer."""

from typing import Any

import keras

from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.internal.shapes import fits
from keras_seq.layers.positions.attention_position import AttentionPosition
from keras_seq.layers.transformer.block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerEncoderBlock(TransformerBlock):
    """Self-attention and a feed-forward network, each with a residual.

        pre:   x = x + dropout(f(norm(x)))
        post:  x = norm(x + dropout(f(x)))

    for f = self-attention, then f = feed-forward. Pre-norm blocks train without a long warm-up, and
    need one more layer normalization after the last block. With `causal=True` the block serves
    decoders without a source: `call` takes whole sequences, and `step` one step at a time.
    `quantize` and `enable_lora` change the kernels of all parts, as in `keras.layers.Dense`.

    Shapes: B batch, T steps, D features.

    Args:
        num_heads: Positive integer, a divisor of D.
        feedforward_units: Positive integer, the hidden units of the feed-forward network.
        causal: Whether a step attends to itself and earlier steps only. Defaults to False.
        position: Optional `RotaryPosition`, `RelativePosition` or `LinearBiases`, the `position`
            of the self-attention.
        activation: Name of a Keras activation, "swiglu", "geglu" or "reglu". Defaults to "relu".
        norm: "pre" or "post". Defaults to "pre".
        normalization: "layer" or "rms" (`keras.layers.RMSNormalization`). Defaults to "layer".
        seed: Optional integer, the random seed of the dropout.
        dropout, attention_dropout, activation_dropout: Floats in [0, 1), the dropout rates of the
            output of each part, of the attention weights, and of the hidden units. Default to 0.
        layer_dropout: Float in [0, 1), the rate at which training leaves out a part for a row of
            the batch, as stochastic depth (Huang et al., 2016, https://arxiv.org/abs/1603.09382).
            Defaults to 0.
        use_bias: Whether the attention and the feed-forward network add biases. Defaults to True.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer: Of their kernels
            and biases, as in `MultiHeadSelfAttention` and `FeedForward`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True at real steps; by default the Keras mask.
        training: Whether to apply dropout.
        attention_mask, inputs_mask: As in `MultiHeadSelfAttention`.

    Returns:
        Tensor `(B, T, D)` in the compute dtype.

    Masks: the mask passes through. Masked steps, even NaN, affect neither outputs nor gradients.

    Raises:
        ValueError: If `norm`, `activation` or `position` is unknown, a size or rate is out of
            range, or a call argument has the wrong shape or dtype.

    Example:

    >>> block = TransformerEncoderBlock(num_heads=2, feedforward_units=16)
    >>> tuple(block(keras.ops.ones((3, 5, 8))).shape)
    (3, 5, 8)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.1,
        https://arxiv.org/abs/1706.03762; Xiong et al., "On Layer Normalization in the Transformer
        Architecture", 2020, https://arxiv.org/abs/2002.04745
    """

    parts = ("attention", "feed_forward")

    def __init__(
        self,
        num_heads: int,
        feedforward_units: int,
        causal: bool = False,
        position: AttentionPosition | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, feedforward_units, position=position, **kwargs)
        self.causal = causal
        seeds = split_seed(self.seed, 4)
        self.attention = self._make_self_attention("attention", causal, position, seeds[0])
        self.feed_forward = self._make_feed_forward(seeds[1])
        self.attention_residual = self._make_residual("attention_residual", seeds[2])
        self.feed_forward_residual = self._make_residual("feed_forward_residual", seeds[3])

    def build(self, input_shape: Any) -> None:
        self.attention.build(input_shape)
        self.feed_forward.build(input_shape)
        self.attention_residual.build(input_shape)
        self.feed_forward_residual.build(input_shape)

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        training: bool | None = None,
        attention_mask: Any = None,
        inputs_mask: Any = None,
    ) -> Any:
        mask = inputs_mask if mask is None else mask
        x = self.attention_residual.around(
            lambda x: self.attention(
                x, mask=mask, training=training, attention_mask=attention_mask
            ),
            # The residual and the normalization do not apply the mask, so padding must be 0.
            zero_padding(inputs, mask),
            training,
        )
        return self._apply_feed_forward(x, training)

    def step(
        self, inputs: Any, position: Any, bias: Any, cache: dict[str, Any], write_index: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Decodes one step of several hypotheses with a causal block.

        Arguments and results are those of `MultiHeadSelfAttention.step`. There is no
        `attention_mask`: `bias` hides steps.
        """
        x, cache = self.attention_residual.around(
            lambda x: self.attention.step(x, position, bias, cache, write_index), inputs
        )
        return self._apply_feed_forward(x), cache

    def compute_output_spec(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Building a model is three times as fast if Keras does not trace the block. For inputs of
        # a wrong shape, tracing raises the error of the sublayer that rejects them.
        if fits(inputs, self.attention.qkv_projection.kernel):
            return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        return super().compute_output_spec(inputs, *args, **kwargs)
