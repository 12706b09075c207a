"""Decoder block of the Transformer."""

import keras

from keras_seq.layers.attention.multi_head_cross_attention import MultiHeadCrossAttention
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

# Shape letters: B batch, T target steps, S source steps, D features, H heads, K beam, L cache.


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerDecoderBlock(keras.layers.Layer):
    """Causal self-attention, attention to a memory, and a feed-forward network.

        pre:   x = x + dropout(f(norm(x)))
        post:  x = norm(x + dropout(f(x)))

    for f = causal self-attention, attention to the memory, feed-forward, in
    this order. `call` takes a whole target at once, as teacher forcing does;
    `project` and `step` take one target step at a time, as search does, and
    give the same numbers.

    Shapes: B batch, T target steps, S source steps, D features, D_m memory
    features.

    Args:
        num_heads: Positive integer, a divisor of D.
        feedforward_units: Positive integer, hidden units of the feed-forward.
        dropout: Float in [0, 1), on the output of each part.
        attention_dropout: Float in [0, 1), on the attention weights.
        activation_dropout: Float in [0, 1), on the hidden units.
        activation: Name of a Keras activation, or "swiglu", "geglu" or "reglu".
        norm: `"pre"` or `"post"`.
        seed: Optional integer, makes the dropout reproducible.
        position: Optional layer, the `position` of the self-attention:
            `RotaryPosition`, `RelativePosition` or `LinearBiases`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        memory: Float tensor `(B, S, D_m)`, the encoder's output.
        inputs_mask: Optional bool tensor `(B, T)`, True where a step is real.
        memory_mask: Optional bool tensor `(B, S)`. Both masks are filled in by
            Keras when not given.
        return_weights: Whether to return the weights of the attention to
            `memory` too.
        training: Whether to apply dropout.

    Returns:
        outputs: Tensor `(B, T, D)` in the compute dtype.
        weights: With `return_weights=True`, float32 tensor `(B, H, T, S)`, as
            `MultiHeadCrossAttention` gives them.

    Masks: the mask of `inputs` passes through; `memory_mask` ends here. What
    a masked step holds, NaN included, reaches neither the real steps nor the
    gradients.

    Raises:
        ValueError: If `norm` is neither "pre" nor "post", a size or rate is out
            of range, or an activation or position is unknown; at a call as the
            parts have it.

    Example:

    >>> block = TransformerDecoderBlock(num_heads=2, feedforward_units=16)
    >>> tuple(block(keras.ops.ones((3, 5, 8)), keras.ops.ones((3, 7, 8))).shape)
    (3, 5, 8)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.1,
        https://arxiv.org/abs/1706.03762
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
            "seed": seed,
            "position": serialized_position(position),
        }
        policy = self.dtype_policy
        seeds = split_seed(seed, 6)
        self.self_attention = MultiHeadSelfAttention(
            num_heads,
            causal=True,
            dropout=attention_dropout,
            seed=seeds[0],
            position=position,
            dtype=policy,
            name="self_attention",
        )
        self.cross_attention = MultiHeadCrossAttention(
            num_heads,
            dropout=attention_dropout,
            seed=seeds[1],
            dtype=policy,
            name="cross_attention",
        )
        self.feed_forward = FeedForward(
            feedforward_units,
            activation=activation,
            dropout=activation_dropout,
            seed=seeds[2],
            dtype=policy,
            name="feed_forward",
        )
        self.self_attention_residual = Residual(
            norm, dropout, seeds[3], dtype=policy, name="self_attention_residual"
        )
        self.cross_attention_residual = Residual(
            norm, dropout, seeds[4], dtype=policy, name="cross_attention_residual"
        )
        self.feed_forward_residual = Residual(
            norm, dropout, seeds[5], dtype=policy, name="feed_forward_residual"
        )

    def build(self, inputs_shape, memory_shape):
        self.self_attention.build(inputs_shape)
        self.cross_attention.build(inputs_shape, memory_shape)
        self.feed_forward.build(inputs_shape)
        self.self_attention_residual.build(inputs_shape)
        self.cross_attention_residual.build(inputs_shape)
        self.feed_forward_residual.build(inputs_shape)

    def call(
        self,
        inputs,
        memory,
        inputs_mask=None,
        memory_mask=None,
        return_weights=False,
        training=None,
    ):
        seen = {}

        def attend_to_memory(x):
            outputs = self.cross_attention(
                x,
                memory,
                value_mask=memory_mask,
                return_weights=return_weights,
                training=training,
            )
            if return_weights:
                outputs, seen["weights"] = outputs
            return outputs

        x = self.self_attention_residual.around(
            lambda x: self.self_attention(x, mask=inputs_mask, training=training),
            # Here too, for the residual and the norm see padding before the attention does.
            zero_padding(inputs, inputs_mask),
            training,
        )
        x = self.cross_attention_residual.around(attend_to_memory, x, training)
        outputs = self.feed_forward_residual.around(
            lambda x: self.feed_forward(x, training=training), x, training
        )
        return (outputs, seen["weights"]) if return_weights else outputs

    def project(self, memory, memory_mask=None):
        """What the cross-attention needs of a memory, computed once.

        Args:
            memory: Float tensor `(B, S, D_m)`.
            memory_mask: Optional bool tensor `(B, S)`.

        Returns:
            Dict of `key` and `value`, each `(B, H, S, D / H)`.
        """
        return self.cross_attention.project(memory, memory_mask)

    def step(
        self,
        inputs,
        position,
        bias,
        cache,
        memory,
        memory_mask=None,
        return_weights=False,
        place=None,
    ):
        """One target step of several hypotheses.

        Args:
            inputs: Float tensor `(B, K, D)`.
            position: Integer scalar tensor, the current step.
            bias: Float32 tensor `(B, K, L, K)`, which cache slots are the past of
                which hypothesis (`layers.beam_cache_mask`).
            cache: Dict of `key` and `value`, each `(B, H, L, K, D / H)`.
            memory: Dict that `project` made.
            memory_mask: Optional bool tensor `(B, S)`.
            return_weights: Whether to return the attention to the memory, too.
            place: Optional integer tensor `(B,)`, which of the L places of the cache is
                written; by default `position`.

        Returns:
            Outputs `(B, K, D)` and the new cache; and weights `(B, H, K, S)` if asked for.
        """
        written = {}

        def attend_to_past(x):
            outputs, written["cache"] = self.self_attention.step(x, position, bias, cache, place)
            return outputs

        x = self.self_attention_residual.around(attend_to_past, inputs)

        def attend_to_memory(x):
            outputs, written["weights"] = self.cross_attention.attend(
                x, **memory, value_mask=memory_mask, return_weights=True
            )
            return outputs

        x = self.cross_attention_residual.around(attend_to_memory, x)
        x = self.feed_forward_residual.around(self.feed_forward, x)
        if return_weights:
            return x, written["cache"], written["weights"]
        return x, written["cache"]

    def compute_output_spec(
        self,
        inputs,
        memory,
        inputs_mask=None,
        memory_mask=None,
        return_weights=False,
        training=None,
    ):
        # As in the encoder's block: without tracing this one.
        known = fits(inputs, self.self_attention.qkv_kernel)
        known = known and fits(memory, self.cross_attention.key_value_kernel)
        if known and not return_weights:
            return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        return super().compute_output_spec(
            inputs, memory, inputs_mask, memory_mask, return_weights, training
        )

    def compute_mask(self, inputs, mask=None):
        return mask

    def get_config(self):
        return {**super().get_config(), **self._config}

    @classmethod
    def from_config(cls, config):
        return cls(**with_position(config))
