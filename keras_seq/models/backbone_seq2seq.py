"""A pretrained encoder with the decoder of a Transformer."""

from typing import Any

import keras

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.models.backbone_encoder import encode_with_backbone, make_backbone
from keras_seq.models.checks import check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.transformer_decoder_model import TransformerDecoderModel


@keras.saving.register_keras_serializable(package="keras_seq")
class BackboneSeq2Seq(TransformerDecoderModel):
    """KerasHub encoder with the decoder of a Transformer, as a functional Keras model.

        m = norm(W encoder([CLS] source) + b), without the step of [CLS]
        x = dropout(sqrt(D) E[id] + position);  blocks, which attend to m;  logits = E h

    For tasks with few pairs, where the encoder is pretrained. The constructor makes new weights;
    `keras-seq train --preset hub:NAME` starts from those of a pretrained encoder. Source ids are
    those of `BackboneClassifier`; target id 0 is padding. The model has the same methods for
    search as `Transformer`.

    Shapes: B batch, S source steps, T target steps, D units, V target vocabulary.

    Args:
        source_vocabulary_size: Positive integer.
        target_vocabulary_size: Positive integer V.
        backbone, backbone_layers, backbone_units, backbone_feedforward_units, backbone_heads,
        backbone_positions, backbone_dropout: See `BackboneClassifier`.
        num_decoder_layers: Positive integer.
        units: Positive integer D, a multiple of `num_heads`.
        feedforward_units: Positive integer, of the decoder.
        num_heads: Positive integer, of the decoder.
        dropout: Float in [0, 1), on target embeddings and on the output of each part of a block.
        attention_dropout: Float in [0, 1), on the attention weights of the decoder.
        activation_dropout: Float in [0, 1), on the hidden units of its feed-forward layers.
        activation: Name of a Keras activation, of the decoder.
        norm: `"pre"` or `"post"`, of the decoder.
        seed: Optional integer, makes the dropout of the decoder reproducible.
        dtype: Dtype policy of all layers, or None for the global policy.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`. The target begins with
            the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    Masks: taken from the ids. Padding changes nothing.

    Raises:
        ImportError: If KerasHub is not installed.
        ValueError: If `backbone` is unknown, or a size or rate is out of range.

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
        Rothe et al., "Leveraging Pre-trained Checkpoints for Sequence Generation Tasks", 2020,
        https://arxiv.org/abs/1907.12461. Zhu et al., "Incorporating BERT into Neural Machine
        Translation", 2020, https://arxiv.org/abs/2002.06823, keep a second encoder instead.
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        backbone: str = "bert",
        backbone_layers: int = 12,
        backbone_units: int = 768,
        backbone_feedforward_units: int = 3072,
        backbone_heads: int = 12,
        backbone_positions: int = 512,
        backbone_dropout: float = 0.1,
        num_decoder_layers: int = 3,
        units: int = 256,
        feedforward_units: int = 1024,
        num_heads: int = 4,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "pre",
        seed: int | None = None,
        dtype: Any = None,
        name: str = "backbone_seq2seq",
        **kwargs: Any,
    ) -> None:
        check_sizes(
            source_vocabulary_size=source_vocabulary_size, num_decoder_layers=num_decoder_layers
        )
        *block_seeds, dropout_seed = split_seed(seed, 1 + num_decoder_layers)
        decoder = self._make_decoder(
            self._make_embedding("target"),
            SinusoidalPosition(dtype=dtype, name="position"),
            self._make_dropout("target", dropout_seed),
            block_seeds,
        )
        source = token_input("source")
        encoder = make_backbone(source_vocabulary_size, vars(self._arguments), dtype)
        _, steps, mask = encode_with_backbone(source, encoder, backbone_positions)
        encoded = ExactDense(units, dtype=dtype, name="encoder_projection")(steps)
        encoded = LayerNormalization(epsilon=1e-5, dtype=dtype, name="encoder_norm")(encoded)
        self._connect(source, encoded, mask, decoder, name=name, **kwargs)
