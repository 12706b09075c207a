"""The Transformer, encoder and decoder."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_choice, check_vocabularies
from keras_seq.models.feature_encoder import check_features, make_feature_encoder, split_mask
from keras_seq.models.inputs import token_input
from keras_seq.models.transformer_decoder_model import TransformerDecoderModel
from keras_seq.models.transformer_parts import (
    encode_with_blocks,
    make_encoder_blocks,
    make_position,
)


@keras.saving.register_keras_serializable(package="keras_seq")
class Transformer(TransformerDecoderModel):
    """Encoder-decoder Transformer over token ids, as a functional Keras model.

        x = dropout(sqrt(D) E[id] + position);  blocks;  logits = E h

    The standard model for translation and other sequence-to-sequence tasks with enough data. The
    output layer shares the table of the target embedding. Id 0 is padding, which changes nothing.

    Shapes: B batch, S source steps, T target steps, D units, V target vocabulary, K hypotheses,
    L steps of the KV cache.

    Args:
        source_vocabulary_size, num_encoder_layers, num_decoder_layers, feedforward_units: Positive
            integers.
        target_vocabulary_size: Positive integer V.
        units: Positive integer D, a multiple of `num_heads`.
        num_heads: Positive integer H.
        dropout: Float in [0, 1), on embeddings and on the output of each part of a block.
        attention_dropout: Float in [0, 1), on attention weights.
        activation_dropout: Float in [0, 1), on the hidden units of the feed-forward layers.
        layer_dropout: Float in [0, 1), as of `TransformerEncoderBlock`.
        activation: Name of a Keras activation, "swiglu", "geglu" or "reglu".
        norm: `"pre"` or `"post"`.
        normalization: `"layer"` or `"rms"`, as of `TransformerEncoderBlock`.
        position: `"sinusoidal"` or `"learned"`, which are added to embeddings; or `"rotary"`,
            `"relative"` (distances up to 16) or `"linear_biases"`, of the self-attention.
        max_positions: Positive integer, the number of learned positions.
        cross_position: `"none"`, or `"rotary"` positions of the attention to the source, for pairs
            that correspond in order, such as words and their pronunciations.
        share_embeddings: Whether source and target use one table (one joint vocabulary).
        copy: Whether a `PointerGenerator` copies source tokens by the attention of the last block.
            An id below V must mean the same token on both sides.
        feature_encoder: "none", "linear", "recurrent" or "transformer": the encoder of the features
            at the end of a source. The decoder attends to its outputs as to those of the encoder
            of the tokens. With "none", features are tokens.
        num_features: Integer, the number of features; theirs are the last ids of the source
            vocabulary.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`. The target begins with
            the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    For search the model offers, over the same weights:

    * `encoder`: functional model from ids `(B, S)` to the memory, a dict of tensors;
    * `decoder_step`: functional model of `token` `(B, K)`, `position` `()`, `state` and `memory`
      with the outputs `logits` `(B, K, V)` and the next `state`;
    * `initial_state(memory, beam_size, length)`, and `grow_state(state, length)`, which makes room
      for more steps;
    * `with_attention(layer, head)`: this model with attention weights as a second output, and
      `decoder_step_with_attention`.

    Raises:
        ValueError: If vocabularies differ while embeddings are shared, or a size or rate is out
            of range.

    Example:

    >>> model = Transformer(20, 20, 1, 1, units=8, feedforward_units=16, num_heads=2)
    >>> ids = keras.ops.array([[5, 6, 3]])
    >>> tuple(model({"source": ids, "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        units: int,
        feedforward_units: int,
        num_heads: int,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "pre",
        normalization: str = "layer",
        position: str = "sinusoidal",
        max_positions: int = 512,
        cross_position: str = "none",
        share_embeddings: bool = False,
        copy: bool = False,
        feature_encoder: str = "none",
        num_features: int = 0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_vocabularies(share_embeddings, source_vocabulary_size, target_vocabulary_size)
        check_choice("cross_position", cross_position, ("none", "rotary"))
        check_features(self._arguments)
        target_embedding = self._make_embedding("target", "embedding" if share_embeddings else None)
        source_embedding = target_embedding if share_embeddings else self._make_embedding("source")
        positions = make_position(self._arguments)
        separate = feature_encoder != "none"
        source_seed, target_seed, *seeds = reversed(
            split_seed(seed, 2 + separate + num_encoder_layers + num_decoder_layers)
        )
        feature_seed = seeds.pop() if separate else None
        source_dropout = self._make_dropout("source", source_seed)
        target_dropout = self._make_dropout("target", target_seed)
        blocks = list(make_encoder_blocks(self._arguments, seeds[:num_encoder_layers]))
        decoder = self._make_decoder(
            target_embedding, positions, target_dropout, seeds[num_encoder_layers:]
        )
        source = token_input("source")
        mask, feature_mask = split_mask(source, self._arguments)
        embedded = source_embedding(source)
        x = source_dropout(embedded if positions is None else positions(embedded))
        encoded = encode_with_blocks(x, mask, blocks, self._arguments)
        if feature_mask is not None:
            encode_features = make_feature_encoder(self._arguments, units, feature_seed)
            features = encode_features(embedded, feature_mask)
            encoded = ops.where(feature_mask[..., None], features, encoded)
            mask = ops.logical_or(mask, feature_mask)
        self._connect(source, encoded, mask, decoder, **kwargs)
