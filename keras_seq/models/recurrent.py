"""The recurrent encoder-decoder with attention."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.convolutional_encoder import ConvolutionalEncoder
from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.models.attentional_decoder import AttentionalDecoder
from keras_seq.models.attentive_model import AttentiveModel
from keras_seq.models.checks import check_choice, check_sizes, check_vocabularies
from keras_seq.models.feature_encoder import (
    check_features,
    make_feature_encoder,
    mean_of_features,
    split_mask,
)
from keras_seq.models.hard_attention_decoder import HardAttentionDecoder
from keras_seq.models.inputs import token_input
from keras_seq.models.recurrent_encoder import (
    NUM_STATES,
    encode_bidirectional,
    make_bidirectional_layers,
)

_CHOICES = {
    "encoder": ("recurrent", "convolutional"),
    "cell": ("gru", "lstm"),
    "attention": (
        "bahdanau",
        "luong",
        "location",
        "bahdanau_monotonic",
        "luong_monotonic",
        "hard",
    ),
    "context": ("every_step", "init"),
    "bridge": ("copy", "dense", "zero"),
}


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentSeq2Seq(AttentiveModel):
    """Recurrent encoder-decoder with attention over token ids, as a functional Keras model.

        encoder:  bidirectional layers over dropout(E[id]), residual from layer 2;
                  or gated convolutions over dropout(E[id]) + position
        bridge:   first decoder states from the last encoder states
        decoder:  attention cell, then further layers with residual sums
        logits  = W h + b, or E_target (P h) with a tied output

    For small corpora and for mappings between similar strings, such as pronunciation or
    inflection. Only the first decoder layer attends to the source, so that the layers above it run
    outside the loop of the attention. Id 0 is padding, which changes nothing.

    Shapes: B batch, S source steps, T target steps, U encoder units, V target vocabulary.

    Args:
        source_vocabulary_size, num_encoder_layers, num_decoder_layers, embedding_units: Positive
            integers.
        target_vocabulary_size: Positive integer V.
        encoder: "recurrent" or "convolutional" (`ConvolutionalEncoder`). A convolutional encoder
            has no states; the mean of its outputs replaces them and the last outputs.
        cell: "gru" or "lstm", of the decoder and of a recurrent encoder.
        encoder_units: Positive integer U, in each direction. A convolutional encoder has twice as
            many.
        decoder_units: Positive integer, also the width of the attentional vector.
        attention: "bahdanau", "luong" (with the score "general"), "location"
            (`LocationSensitiveAttention`), "bahdanau_monotonic", "luong_monotonic", or "hard"
            (`HardMonotonicAttention`).
        attention_units: Positive integer, the width in which the attention compares or, with
            "hard", the units of its hidden layer. Luong's attentions ignore it.
        attention_window: Non-negative integer, the `window` of `HardMonotonicAttention`.
        input_feeding: Whether the first decoder layer reads the attentional vector of the
            previous step. Hard attention ignores this argument.
        context: "every_step" or "init": whether the first decoder layer reads the last outputs of
            the encoder with each token, or sees them in its first state only.
        bridge: "copy", "dense" (a layer with tanh) or "zero": how the first states of a decoder
            layer come from the last states, both directions joined, of the encoder layer at the
            same height, or of the topmost encoder layer.
        dropout: Float in [0, 1), on embeddings, between layers and on the decoder's outputs.
        attention_dropout: Float in [0, 1), on attention weights.
        share_embeddings: Whether source and target use one table (one joint vocabulary).
        copy: Whether a `PointerGenerator` copies source tokens by their attention. An id below V
            must mean the same token on both sides.
        feature_encoder: "none", "linear", "recurrent" or "transformer": the encoder of the features
            at the end of a source. The mean of its outputs, `embedding_units` wide, is joined with
            each output of the encoder of the tokens, and with the last ones. With "none", features
            are tokens.
        num_features: Integer, the number of features; theirs are the last ids of the source
            vocabulary.
        tie_output: Whether the logits use the table of the target embedding. Hard attention
            ignores this argument.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`. The target begins with
            the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    For search and for attention weights the model has the same methods as `Transformer`, over the
    same weights.

    Raises:
        ValueError: If an option is unknown, vocabularies differ while embeddings are shared, or
            `bridge` is "copy" and `decoder_units` is not twice `encoder_units`.

    Example:

    >>> model = RecurrentSeq2Seq(20, 20, embedding_units=4, encoder_units=4,
    ...     decoder_units=8, attention_units=8)
    >>> ids = keras.ops.array([[5, 6, 3]])
    >>> tuple(model({"source": ids, "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Bahdanau, Cho and Bengio, 2015, https://arxiv.org/abs/1409.0473; Luong, Pham and Manning,
        2015, https://arxiv.org/abs/1508.04025; Wu et al., "Google's Neural Machine Translation
        System", 2016, section 3, https://arxiv.org/abs/1609.08144; Gehring et al., "A Convolutional
        Encoder Model for Neural Machine Translation", 2017, https://arxiv.org/abs/1611.02344
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        *,
        encoder: str = "recurrent",
        cell: str = "gru",
        num_encoder_layers: int = 1,
        num_decoder_layers: int = 1,
        embedding_units: int = 256,
        encoder_units: int = 256,
        decoder_units: int = 512,
        attention: str = "bahdanau",
        attention_units: int = 256,
        attention_window: int = 0,
        input_feeding: bool = True,
        context: str = "every_step",
        bridge: str = "dense",
        dropout: float = 0.2,
        attention_dropout: float = 0.0,
        share_embeddings: bool = False,
        copy: bool = False,
        feature_encoder: str = "none",
        num_features: int = 0,
        tie_output: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        self._check_arguments()
        # A convolutional encoder draws the dropout of all its layers from one seed.
        encoder_seeds = num_encoder_layers - 1 if encoder == "recurrent" else 1
        separate = feature_encoder != "none"
        seeds = split_seed(seed, 3 + encoder_seeds + num_decoder_layers + separate)
        target_embedding = source_embedding = self._make_embedding("target")
        if not share_embeddings:
            source_embedding = self._make_embedding("source")
        source_dropout = self._make_dropout("source_dropout", seeds)
        target_dropout = self._make_dropout("target_dropout", seeds)
        encode = self._make_encoder(seeds)
        encode_features = (
            make_feature_encoder(self._arguments, embedding_units, seeds.pop())
            if separate
            else None
        )
        decoder_class: Any = HardAttentionDecoder if attention == "hard" else AttentionalDecoder
        decoder = decoder_class(target_embedding, target_dropout, self._arguments, seeds)

        source, target = token_input("source"), token_input("target")
        mask, feature_mask = split_mask(source, self._arguments)
        copies = {"source": source} if copy else {}
        embedded = source_dropout(source_embedding(source))
        encoded, summary, last_states = encode(embedded, mask)
        if encode_features is not None:
            features = mean_of_features(encode_features(embedded, feature_mask), feature_mask)
            summary = ops.concatenate([summary, features], axis=-1)
            encoded = _join(encoded, features)
        states = decoder.first_states(last_states, bridge)
        summaries = {"summary": summary} if context == "every_step" else {}
        decoder_source = {"value": encoded, "value_mask": mask, **summaries, **copies}
        logits, _ = decoder.logits(target, decoder_source, states)
        super().__init__(inputs={"source": source, "target": target}, outputs=logits, **kwargs)
        memory = {"mask": mask, **decoder.project(decoder_source), **summaries, **copies, **states}
        self._set_parts(keras.Model(source, memory, name="encoder"), decoder)
        self._set_attention(
            lambda layers: decoder.logits(target, decoder_source, states, layers),
            num_layers=1,
            num_heads=1,
        )

    def _check_arguments(self) -> None:
        args = self._arguments
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(args, name), choices)
        if args.copy and args.attention == "hard":
            raise ValueError('`copy` must be False with attention="hard", received True.')
        check_sizes(
            num_encoder_layers=args.num_encoder_layers,
            num_decoder_layers=args.num_decoder_layers,
            embedding_units=args.embedding_units,
            encoder_units=args.encoder_units,
            decoder_units=args.decoder_units,
        )
        check_features(args)
        check_vocabularies(
            args.share_embeddings, args.source_vocabulary_size, args.target_vocabulary_size
        )
        if args.bridge == "copy" and args.decoder_units != 2 * args.encoder_units:
            raise ValueError(
                'bridge="copy" needs `decoder_units` twice `encoder_units` (both directions '
                f"joined), received {args.decoder_units} and {args.encoder_units}: change one or "
                'use bridge="dense".'
            )

    def _make_embedding(self, side: str) -> Any:
        args = self._arguments
        return TokenEmbedding(
            getattr(args, f"{side}_vocabulary_size"),
            args.embedding_units,
            dtype=args.dtype,
            name="embedding" if args.share_embeddings else f"{side}_embedding",
        )

    def _make_dropout(self, name: str, seeds: list[int | None]) -> Any:
        args = self._arguments
        return keras.layers.Dropout(args.dropout, seed=seeds.pop(), dtype=args.dtype, name=name)

    def _make_encoder(self, seeds: list[int | None]) -> Any:
        """Makes a function from embeddings and their mask to outputs, summary and last states.

        The outputs are `(B, S, 2U)`, the summary and the states of each layer `(B, 2U)`.
        """
        args = self._arguments
        if args.encoder == "convolutional":
            return self._make_convolutional_encoder(seeds.pop())
        layers = make_bidirectional_layers(
            args.cell, args.num_encoder_layers, args.encoder_units, args.dtype
        )
        dropouts = [
            self._make_dropout(f"encoder_dropout_{i}", seeds)
            for i in range(1, args.num_encoder_layers)
        ]

        def encode(x: Any, mask: Any) -> tuple[Any, Any, Any]:
            outputs, last_states = encode_bidirectional(layers, dropouts, x, mask)
            return outputs, last_states[-1][0], last_states

        return encode

    def _make_convolutional_encoder(self, seed: int | None) -> Any:
        args = self._arguments
        convolutions = ConvolutionalEncoder(
            2 * args.encoder_units,
            args.num_encoder_layers,
            dropout=args.dropout,
            seed=seed,
            dtype=args.dtype,
            name="encoder",
        )
        position = SinusoidalPosition(dtype=args.dtype, name="position")

        def encode(x: Any, mask: Any) -> tuple[Any, Any, Any]:
            outputs = convolutions(position(x), mask=mask)
            count = ops.sum(ops.cast(mask, outputs.dtype), axis=1, keepdims=True)
            # Outputs are 0 on padding. The count is 0 for a row of padding.
            mean = ops.sum(outputs, axis=1) / ops.maximum(count, 1)
            return outputs, mean, [[mean] * NUM_STATES[args.cell]]

        return encode


def _join(x: Any, features: Any) -> Any:
    """Joins each step of `x` `(B, S, 2U)` with the features `(B, E)` of its row."""
    ones = ops.ones_like(x[..., :1])
    return ops.concatenate([x, ones * features[:, None]], axis=-1)
