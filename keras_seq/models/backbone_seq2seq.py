"""A pretrained encoder with the decoder of a Transformer."""

from types import SimpleNamespace

import keras

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.layers.transformer.decoder_block import TransformerDecoderBlock
from keras_seq.models.backbone_encoder import backbone_encoder, make_backbone
from keras_seq.models.checks import check_sizes
from keras_seq.models.text_encoders import BLOCK_ARGUMENTS
from keras_seq.models.transformer_decoder_model import TransformerDecoderModel

# Shape letters: B batch, S source steps, T target steps, D units, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class BackboneSeq2Seq(TransformerDecoderModel):
    """Encoder of KerasHub and decoder of a Transformer, as a functional Keras model.

        m = norm(W encoder([CLS] source) + b), without the step of [CLS]
        x = dropout(sqrt(D) E[id] + position);  blocks, which attend to m;  logits = E h

    Its weights are new; `keras-seq train --preset hub:NAME` begins with those of a
    pretrained encoder. Source ids are as those of `BackboneClassifier`; of target ids
    0 is padding. It has what search needs, as `Transformer` has it.

    Shapes: B batch, S source steps, T target steps, D units, V target vocabulary.

    Args:
        source_vocabulary_size: Positive integer.
        target_vocabulary_size: Positive integer V.
        backbone, backbone_layers, backbone_units, backbone_feedforward_units,
        backbone_heads, backbone_positions, backbone_dropout: As of `BackboneClassifier`.
        num_decoder_layers: Positive integer.
        units: Positive integer D, a multiple of `num_heads`.
        feedforward_units: Positive integer, of the decoder.
        num_heads: Positive integer, of the decoder.
        dropout: Float in [0, 1), on target embeddings and on the output of each part
            of a block.
        attention_dropout: Float in [0, 1), on the decoder's attention weights.
        activation_dropout: Float in [0, 1), on its feed-forward's hidden units.
        activation: Name of a Keras activation, of the decoder.
        norm: `"pre"` or `"post"`, of the decoder.
        seed: Optional integer, makes the decoder's dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`, the
            latter beginning with the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token that follows
        `target[:, t]`.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ImportError: If KerasHub is not installed.
        ValueError: If `backbone` is none of those named, or a size or rate is out
            of range.

    Example:

    >>> model = BackboneSeq2Seq(
    ...     20,
    ...     30,
    ...     backbone_layers=1,
    ...     backbone_units=8,
    ...     backbone_feedforward_units=16,
    ...     backbone_heads=2,
    ...     backbone_positions=16,
    ...     num_decoder_layers=1,
    ...     units=8,
    ...     feedforward_units=16,
    ...     num_heads=2,
    ... )
    >>> ids = keras.ops.array([[5, 6, 3]])
    >>> tuple(model({"source": ids, "target": ids}).shape)
    (1, 3, 30)

    Reference:
        Zhu et al., "Incorporating BERT into Neural Machine Translation", 2020,
        https://arxiv.org/abs/2002.06823; here it is the encoder itself, as in Rothe et al.,
        "Leveraging Pre-trained Checkpoints for Sequence Generation Tasks", 2020,
        https://arxiv.org/abs/1907.12461
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        backbone="bert",
        backbone_layers=12,
        backbone_units=768,
        backbone_feedforward_units=3072,
        backbone_heads=12,
        backbone_positions=512,
        backbone_dropout=0.1,
        num_decoder_layers=3,
        units=256,
        feedforward_units=1024,
        num_heads=4,
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation="relu",
        norm="pre",
        seed=None,
        name="backbone_seq2seq",
        **kwargs,
    ):
        check_sizes(
            source_vocabulary_size=source_vocabulary_size, num_decoder_layers=num_decoder_layers
        )
        config = {
            "source_vocabulary_size": source_vocabulary_size,
            "target_vocabulary_size": target_vocabulary_size,
            "backbone": backbone,
            "backbone_layers": backbone_layers,
            "backbone_units": backbone_units,
            "backbone_feedforward_units": backbone_feedforward_units,
            "backbone_heads": backbone_heads,
            "backbone_positions": backbone_positions,
            "backbone_dropout": backbone_dropout,
            "num_decoder_layers": num_decoder_layers,
            "units": units,
            "feedforward_units": feedforward_units,
            "num_heads": num_heads,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "activation": activation,
            "norm": norm,
            "seed": seed,
        }
        dtype = kwargs.pop("dtype", None)
        block_arguments = {key: config[key] for key in BLOCK_ARGUMENTS}
        seeds = split_seed(seed, 1 + num_decoder_layers)
        decoder = SimpleNamespace(
            embedding=TokenEmbedding(
                target_vocabulary_size, units, dtype=dtype, name="target_embedding"
            ),
            position=SinusoidalPosition(dtype=dtype, name="position"),
            dropout=Dropout(dropout, seed=seeds.pop(), dtype=dtype, name="target_dropout"),
            blocks=[
                TransformerDecoderBlock(
                    **block_arguments, seed=seed, dtype=dtype, name=f"decoder_block_{i}"
                )
                for i, seed in enumerate(seeds)
            ],
            norm=LayerNormalization(epsilon=1e-5, dtype=dtype, name="decoder_norm")
            if norm == "pre"
            else None,
        )
        source = keras.Input((None,), dtype="int32", name="source")
        encoder = make_backbone(source_vocabulary_size, config, dtype)
        _, steps, mask = backbone_encoder(source, encoder, backbone_positions)
        encoded = ExactDense(units, dtype=dtype, name="encoder_projection")(steps)
        encoded = LayerNormalization(epsilon=1e-5, dtype=dtype, name="encoder_norm")(encoded)
        self._connect(source, mask, encoded, decoder, config, dtype, name=name, **kwargs)
