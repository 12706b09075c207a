"""The Transformer, encoder and decoder."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.layers.transformer.decoder_block import TransformerDecoderBlock
from keras_seq.layers.transformer.encoder_block import TransformerEncoderBlock
from keras_seq.models.text_encoders import BLOCK_ARGUMENTS
from keras_seq.models.transformer_decoder_model import TransformerDecoderModel

# Shape letters: B batch, S source steps, T target steps, D units, H heads, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class Transformer(TransformerDecoderModel):
    """Encoder-decoder Transformer over token ids, as a functional Keras model.

        x = dropout(sqrt(D) E[id] + position);  blocks;  logits = E h

    The output layer shares the table of the target embedding. Id 0 is padding.

    Shapes: B batch, S source steps, T target steps, D units, V target
    vocabulary, K hypotheses, L steps of the cache.

    Args:
        source_vocabulary_size: Positive integer.
        target_vocabulary_size: Positive integer V.
        num_encoder_layers: Positive integer.
        num_decoder_layers: Positive integer.
        units: Positive integer D, a multiple of `num_heads`.
        feedforward_units: Positive integer.
        num_heads: Positive integer H.
        dropout: Float in [0, 1), on embeddings and on the output of each part
            of a block.
        attention_dropout: Float in [0, 1), on attention weights.
        activation_dropout: Float in [0, 1), on the feed-forward's hidden units.
        activation: Name of a Keras activation.
        norm: `"pre"` or `"post"`.
        share_embeddings: Whether source and target use one table (one joint
            vocabulary).
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`, the
            latter beginning with the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token that follows
        `target[:, t]`.

    Besides itself the model offers, over the same weights, what search needs:

    * `encoder`: functional model, ids `(B, S)` -> memory, a dict of tensors;
    * `decoder_step`: functional model of `token` `(B, K)`, `position` `()`,
      `state` and `memory` -> `logits` `(B, K, V)` and the next `state`;
    * `initial_state(memory, beam_size, length)`, and `grow_state(state, length)`
      with room for more steps;
    * `with_attention(layer, head)`: itself, with attention weights as a second output.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ValueError: If vocabularies differ while embeddings are shared, or a
            size or rate is out of range.

    Example:

    >>> model = Transformer(20, 20, 1, 1, units=8, feedforward_units=16, num_heads=2)
    >>> ids = keras.ops.array([[5, 6, 3]])
    >>> tuple(model({"source": ids, "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017,
        https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        num_encoder_layers,
        num_decoder_layers,
        units,
        feedforward_units,
        num_heads,
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation="relu",
        norm="pre",
        share_embeddings=False,
        seed=None,
        name="transformer",
        **kwargs,
    ):
        if share_embeddings and source_vocabulary_size != target_vocabulary_size:
            raise ValueError(
                "`share_embeddings` needs one vocabulary for both sides, received "
                f"{source_vocabulary_size} source and {target_vocabulary_size} target words."
            )
        config = {
            "source_vocabulary_size": source_vocabulary_size,
            "target_vocabulary_size": target_vocabulary_size,
            "num_encoder_layers": num_encoder_layers,
            "num_decoder_layers": num_decoder_layers,
            "units": units,
            "feedforward_units": feedforward_units,
            "num_heads": num_heads,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "activation": activation,
            "norm": norm,
            "share_embeddings": share_embeddings,
            "seed": seed,
        }
        dtype = kwargs.pop("dtype", None)
        block_arguments = {key: config[key] for key in BLOCK_ARGUMENTS}
        target_embedding = TokenEmbedding(
            target_vocabulary_size,
            units,
            dtype=dtype,
            name="embedding" if share_embeddings else "target_embedding",
        )
        source_embedding = (
            target_embedding
            if share_embeddings
            else TokenEmbedding(source_vocabulary_size, units, dtype=dtype, name="source_embedding")
        )
        position = SinusoidalPosition(dtype=dtype, name="position")
        seeds = split_seed(seed, 2 + num_encoder_layers + num_decoder_layers)
        source_dropout = Dropout(dropout, seed=seeds.pop(), dtype=dtype, name="source_dropout")
        target_dropout = Dropout(dropout, seed=seeds.pop(), dtype=dtype, name="target_dropout")
        encoder_blocks = [
            TransformerEncoderBlock(
                **block_arguments, seed=seeds.pop(), dtype=dtype, name=f"encoder_block_{i}"
            )
            for i in range(num_encoder_layers)
        ]
        decoder_blocks = [
            TransformerDecoderBlock(
                **block_arguments, seed=seeds.pop(), dtype=dtype, name=f"decoder_block_{i}"
            )
            for i in range(num_decoder_layers)
        ]
        encoder_norm = decoder_norm = None
        if norm == "pre":
            encoder_norm = LayerNormalization(epsilon=1e-5, dtype=dtype, name="encoder_norm")
            decoder_norm = LayerNormalization(epsilon=1e-5, dtype=dtype, name="decoder_norm")

        source = keras.Input((None,), dtype="int32", name="source")
        mask = ops.not_equal(source, 0)
        x = source_dropout(position(source_embedding(source)))
        for block in encoder_blocks:
            x = block(x, mask=mask)
        decoder = SimpleNamespace(
            embedding=target_embedding,
            position=position,
            dropout=target_dropout,
            blocks=decoder_blocks,
            norm=decoder_norm,
        )
        encoded = encoder_norm(x) if encoder_norm else x
        self._connect(source, mask, encoded, decoder, config, dtype, name=name, **kwargs)
