"""A text encoder with the decoder of a Transformer."""

from typing import Any

import keras

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_sizes
from keras_seq.models.text_encoder import TextEncoder
from keras_seq.models.transformer_decoder_model import TransformerDecoderModel
from keras_seq.models.transformer_parts import make_position


@keras.saving.register_keras_serializable(package="keras_seq")
class BackboneSeq2Seq(TransformerDecoderModel):
    """Text encoder with the decoder of a Transformer, as a functional Keras model.

        m = norm(W encoder(source) + b)
        x = dropout(sqrt(D) E[id] + position);  blocks, which attend to m;  logits = E h

    For tasks with few pairs, where the encoder is a pretrained `BackboneTextEncoder`; any other
    text encoder fits as well. Id 0 is padding, which changes nothing. For search the model has the
    same methods as `Transformer`.

    Shapes: B batch, S source steps, T target steps, D units, V target vocabulary.

    Args:
        encoder: `BackboneTextEncoder` or another text encoder. This model shares its weights.
        target_vocabulary_size, num_decoder_layers, feedforward_units, num_heads: Positive
            integers.
        units: Positive integer D, a multiple of `num_heads`.
        dropout: Float in [0, 1), on target embeddings and on the output of each part of a block.
        attention_dropout, activation_dropout: Floats in [0, 1), on the attention weights and on
            the hidden units of the feed-forward layers.
        layer_dropout: Float in [0, 1), as of `TransformerEncoderBlock`.
        activation: Name of a Keras activation, "swiglu", "geglu" or "reglu".
        norm: `"pre"` or `"post"`.
        normalization: `"layer"` or `"rms"`, as of `TransformerEncoderBlock`.
        position: `"sinusoidal"` or `"learned"`, which are added to embeddings; or `"rotary"`,
            `"relative"` (distances up to 16) or `"linear_biases"`, of the self-attention.
        max_positions: Positive integer, the number of learned positions.
        seed: Optional integer, makes the dropout of the decoder reproducible.
        **kwargs: `name`, and `dtype`, the policy of the layers after the encoder, which defaults
            to the policy of the encoder.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`. The target begins with
            the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    Raises:
        ValueError: If a size or rate is out of range.

    Example:

    >>> from keras_seq.models import RecurrentTextEncoder
    >>> encoder = RecurrentTextEncoder(20, units=8)
    >>> model = BackboneSeq2Seq(encoder, 30, 1, units=8, feedforward_units=16, num_heads=2)
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
        encoder: TextEncoder,
        target_vocabulary_size: int,
        num_decoder_layers: int = 3,
        units: int = 256,
        feedforward_units: int = 1024,
        num_heads: int = 4,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "pre",
        normalization: str = "layer",
        position: str = "sinusoidal",
        max_positions: int = 512,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_sizes(num_decoder_layers=num_decoder_layers)
        args = self._arguments
        dtype = args.dtype = args.dtype or encoder.dtype_policy
        *block_seeds, dropout_seed = split_seed(seed, 1 + num_decoder_layers)
        decoder = self._make_decoder(
            self._make_embedding("target"),
            make_position(args),
            self._make_dropout("target", dropout_seed),
            block_seeds,
        )
        projection = ExactDense(units, dtype=dtype, name="encoder_projection")
        norm_layer = LayerNormalization(epsilon=1e-5, dtype=dtype, name="encoder_norm")
        encoded = norm_layer(projection(encoder.output["steps"]))
        source, mask = encoder.input["source"], encoder.output["mask"]
        self._connect(source, encoded, mask, decoder, **kwargs)
