"""Decoder block of the Transformer."""

from typing import Any

import keras

from keras_seq.layers.attention.multi_head_cross_attention import MultiHeadCrossAttention
from keras_seq.layers.internal.configured_layer import serialize_argument
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.internal.shapes import fits
from keras_seq.layers.positions.attention_position import AttentionPosition
from keras_seq.layers.positions.rotary_position import RotaryPosition
from keras_seq.layers.transformer.block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerDecoderBlock(TransformerBlock):
    """Causal self-attention, attention to a memory, and a feed-forward network.

        pre:   x = x + dropout(f(norm(x)))
        post:  x = norm(x + dropout(f(x)))

    for f = causal self-attention, then attention to the memory, then feed-forward. `call` takes
    whole targets, as in teacher forcing. `project` and `step` take one target step at a time, as in
    a search, and return the same numbers. `quantize` and `enable_lora` change the kernels
    of all parts, as in `keras.layers.Dense`.

    Shapes: B batch, T target steps, S source steps, D features, D_m memory features.

    Args:
        num_heads, feedforward_units, position: As in `TransformerEncoderBlock`.
        cross_position: Optional `RotaryPosition` of the attention to the memory; see
            `MultiHeadCrossAttention`.
        kwargs: Other arguments of `TransformerEncoderBlock`, except `causal`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        memory: Float tensor `(B, S, D_m)`, the outputs of an encoder.
        inputs_mask: Optional bool tensor `(B, T)`, True at real steps; by default the Keras mask.
        memory_mask: Optional bool tensor `(B, S)`. Defaults to the Keras mask of `memory`.
        return_weights: Whether to return the weights of the attention to `memory` too.
        training: Whether to apply dropout.
        attention_mask: Optional bool tensor `(B, T, T)` of the self-attention, True where a step
            may attend to an earlier step or itself. `inputs_mask` applies too.
        cross_attention_mask: Optional bool tensor `(B, T, S)`, True where a step may attend to a
            step of `memory`. `memory_mask` applies too.

    Returns:
        outputs: Tensor `(B, T, D)` in the compute dtype.
        weights: With `return_weights=True`, those of `MultiHeadCrossAttention`, `(B, H, T, S)`.

    Masks: the mask of `inputs` passes through. A masked step of `inputs` or `memory`, even if it
    holds NaN, changes neither the outputs nor the gradients of real steps.

    Raises:
        ValueError: If `norm`, `activation` or `position` is unknown, a size or rate is out of
            range, or a call argument has the wrong shape or dtype.

    Example:

    >>> block = TransformerDecoderBlock(num_heads=2, feedforward_units=16)
    >>> tuple(block(keras.ops.ones((3, 5, 8)), keras.ops.ones((3, 7, 8))).shape)
    (3, 5, 8)

    Reference:
        Vaswani et al., 2017, section 3.1, https://arxiv.org/abs/1706.03762
    """

    parts = ("self_attention", "cross_attention", "feed_forward")

    def __init__(
        self,
        num_heads: int,
        feedforward_units: int,
        position: AttentionPosition | None = None,
        cross_position: RotaryPosition | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, feedforward_units, position=position, **kwargs)
        self.cross_position = serialize_argument(cross_position)
        seeds = split_seed(self.seed, 6)
        self.self_attention = self._make_self_attention("self_attention", True, position, seeds[0])
        self.cross_attention = MultiHeadCrossAttention(
            num_heads,
            cross_position,
            dropout=self.attention_dropout,
            seed=seeds[1],
            **self.weight_arguments(),
            dtype=self.dtype_policy,
            name="cross_attention",
        )
        self.feed_forward = self._make_feed_forward(seeds[2])
        self.self_attention_residual = self._make_residual("self_attention_residual", seeds[3])
        self.cross_attention_residual = self._make_residual("cross_attention_residual", seeds[4])
        self.feed_forward_residual = self._make_residual("feed_forward_residual", seeds[5])

    def build(self, inputs_shape: Any, memory_shape: Any) -> None:
        self.self_attention.build(inputs_shape)
        self.cross_attention.build(inputs_shape, memory_shape)
        self.feed_forward.build(inputs_shape)
        self.self_attention_residual.build(inputs_shape)
        self.cross_attention_residual.build(inputs_shape)
        self.feed_forward_residual.build(inputs_shape)

    def call(
        self,
        inputs: Any,
        memory: Any,
        inputs_mask: Any = None,
        memory_mask: Any = None,
        return_weights: bool = False,
        training: bool | None = None,
        attention_mask: Any = None,
        cross_attention_mask: Any = None,
    ) -> Any:
        x = self.self_attention_residual.around(
            lambda x: self.self_attention(
                x, mask=inputs_mask, training=training, attention_mask=attention_mask
            ),
            # The residual and the normalization do not apply the mask, so padding must be 0.
            zero_padding(inputs, inputs_mask),
            training,
        )
        result = self.cross_attention_residual.around(
            lambda x: self.cross_attention(
                x,
                memory,
                value_mask=memory_mask,
                return_weights=return_weights,
                training=training,
                attention_mask=cross_attention_mask,
            ),
            x,
            training,
        )
        x, weights = result if return_weights else (result, None)
        outputs = self._apply_feed_forward(x, training)
        return (outputs, weights) if return_weights else outputs

    def project(self, memory: Any, memory_mask: Any = None) -> dict[str, Any]:
        """Computes the keys and values of a memory `(B, S, D_m)`, once for all decoding steps.

        `memory_mask` is an optional bool tensor `(B, S)`. Returns a dict of `key` and `value`, each
        `(B, H, S, D / H)`.
        """
        return self.cross_attention.project(memory, memory_mask)

    def step(
        self,
        inputs: Any,
        position: Any,
        bias: Any,
        cache: dict[str, Any],
        memory: dict[str, Any],
        memory_mask: Any = None,
        return_weights: bool = False,
        write_index: Any = None,
        cross_attention_mask: Any = None,
    ) -> tuple[Any, ...]:
        """Decodes one target step of K hypotheses.

        `inputs`, `position`, `bias`, `cache` and `write_index` are those of
        `MultiHeadSelfAttention.step`. `memory` is from `project`, and `memory_mask` an optional
        bool tensor `(B, S)`. `cross_attention_mask` is an optional bool tensor `(B, K, S)` for this
        step. There is no `attention_mask`: `bias` hides steps. Returns the outputs `(B, K, D)`, the
        new cache, and with `return_weights` the weights `(B, H, K, S)` of the attention to the
        memory.
        """
        x, cache = self.self_attention_residual.around(
            lambda x: self.self_attention.step(x, position, bias, cache, write_index), inputs
        )
        x, weights = self.cross_attention_residual.around(
            lambda x: self.cross_attention.attend(
                x,
                **memory,
                value_mask=memory_mask,
                return_weights=True,
                position=position,
                attention_mask=cross_attention_mask,
            ),
            x,
        )
        outputs = self._apply_feed_forward(x), cache
        return (*outputs, weights) if return_weights else outputs

    def compute_output_spec(self, inputs: Any, memory: Any, *args: Any, **kwargs: Any) -> Any:
        # Avoids tracing for speed, as in `TransformerEncoderBlock`.
        known = fits(inputs, self.self_attention.qkv_projection.kernel)
        known = known and fits(memory, self.cross_attention.key_value_projection.kernel)
        if known and not args and not kwargs.get("return_weights"):
            return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        return super().compute_output_spec(inputs, memory, *args, **kwargs)
