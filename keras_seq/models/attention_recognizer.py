"""Speech to tokens by attention: listen, attend and spell."""

from typing import Any

import keras

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.speech.ctc_logits import CTCLogits
from keras_seq.models.attentional_decoder import AttentionalDecoder
from keras_seq.models.attentive_model import AttentiveModel
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.recurrent_encoder import make_bidirectional_layers
from keras_seq.models.speech_encoder import audio_inputs, encode_pyramid


@keras.saving.register_keras_serializable(package="keras_seq")
class AttentionRecognizer(AttentiveModel):
    """Speech recognizer with attention (listen, attend and spell), as a functional Keras model.

        features: x_s, log-mel or given, normalized over the features of each step, augmented
        encoder:  h^1 = BiRNN(x)
                  h^i_p = BiRNN([h^{i-1}_{2p}; h^{i-1}_{2p+1}]), i = 2 ... L
        first decoder states = tanh(W [last states of h^L] + b)
        decoder:  attention cell over h^L, then further layers with residual sums
        logits  = W h + b;  with `ctc` also logits of labels and blank, from h^L

    For transcripts whose order may differ from the audio, or that depend on earlier tokens;
    `CTCRecognizer` is faster. Each encoder layer but the first halves the number of steps, so that
    the decoder attends to P = S / 2^(L - 1) steps, rounded up at each layer. An odd number of
    steps is padded with 0. Token 0 is padding.

    Shapes: B batch, N samples, S steps of features, P steps of the encoder, T target steps, V
    tokens.

    Args:
        vocabulary_size: Positive integer V.
        features: Layer that computes features and their mask from a dict of `samples` and
            `lengths`, such as `LogMelSpectrogram`; or a positive integer, the number of features,
            if the source consists of features.
        cell: "gru" or "lstm", of encoder and decoder.
        num_encoder_layers: Positive integer L.
        num_decoder_layers, embedding_units: Positive integers.
        encoder_units: Positive integer, in each direction.
        decoder_units: Positive integer, also the width of the attentional vector.
        attention: "location" (`LocationSensitiveAttention`) or "bahdanau".
        attention_units: Positive integer, the width in which the attention compares.
        dropout: Float in [0, 1), on the inputs of each encoder layer, on embeddings, between
            decoder layers and on the decoder's outputs.
        attention_dropout: Float in [0, 1), on attention weights.
        augmentation: Optional layer such as `SpecAugment`, which changes the normalized features
            in training.
        speed: Optional layer such as `RandomSpeed`, which changes the samples and their number in
            training.
        ctc: Whether the model has `with_ctc`, to train the encoder by connectionist temporal
            classification as well, which makes its attention monotonic.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of `source`, a dict of `lengths` `(B,)` and float `samples` `(B, N)` or
            `features` `(B, S, D)`; and of `target`, int32 ids `(B, T)`, which begin with the start
            token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    For search and for attention weights the model has the same methods as `Transformer`, over the
    same weights. With `ctc`, `with_ctc` is this model with two outputs, `logits` and `ctc`
    `(B, P, V)`, the logits of labels and of the blank, which is 0, for `losses.CTCLoss`.
    Attention, alignments and the coverage penalty refer to the P steps of the encoder.

    Masks: taken from the lengths and the ids. Padding changes nothing, whatever samples or
    features it contains.

    Raises:
        ValueError: If an option is unknown or a size is not positive.

    Example:

    >>> from keras_seq.layers import LogMelSpectrogram
    >>> model = AttentionRecognizer(14, LogMelSpectrogram(8000, num_mels=20),
    ...     num_encoder_layers=2, embedding_units=4, encoder_units=4, decoder_units=8,
    ...     attention_units=8)
    >>> source = {"samples": keras.ops.zeros((1, 4000)), "lengths": keras.ops.array([3000])}
    >>> tuple(model({"source": source, "target": keras.ops.array([[2, 7, 9]])}).shape)
    (1, 3, 14)

    Reference:
        Chan, Jaitly, Le and Vinyals, "Listen, Attend and Spell", ICASSP 2016, sections 3.1 and
        3.2, https://arxiv.org/abs/1508.01211; Chorowski et al., "Attention-Based Models for Speech
        Recognition", NeurIPS 2015, https://arxiv.org/abs/1506.07503; with CTC: Kim, Hori and
        Watanabe, "Joint CTC-Attention based End-to-End Speech Recognition using Multi-task
        Learning", ICASSP 2017, https://arxiv.org/abs/1609.06773
    """

    def __init__(
        self,
        vocabulary_size: int,
        features: Any,
        *,
        cell: str = "gru",
        num_encoder_layers: int = 3,
        num_decoder_layers: int = 1,
        embedding_units: int = 64,
        encoder_units: int = 128,
        decoder_units: int = 256,
        attention: str = "location",
        attention_units: int = 128,
        dropout: float = 0.2,
        attention_dropout: float = 0.0,
        augmentation: Any = None,
        speed: Any = None,
        ctc: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_choice("cell", cell, ("gru", "lstm"))
        check_choice("attention", attention, ("location", "bahdanau"))
        check_sizes(
            vocabulary_size=vocabulary_size,
            num_encoder_layers=num_encoder_layers,
            num_decoder_layers=num_decoder_layers,
            embedding_units=embedding_units,
            encoder_units=encoder_units,
            decoder_units=decoder_units,
        )
        dtype = self._arguments.dtype
        seeds = split_seed(seed, num_encoder_layers + num_decoder_layers + 2)
        target_dropout, *encoder_dropouts = (
            keras.layers.Dropout(dropout, seed=seeds.pop(), dtype=dtype, name=f"{part}_dropout")
            for part in ("target", *(f"encoder_{i}" for i in range(num_encoder_layers)))
        )
        embedding = TokenEmbedding(
            vocabulary_size, embedding_units, dtype=dtype, name="target_embedding"
        )
        decoder = AttentionalDecoder(embedding, target_dropout, self._arguments, seeds)
        layers = make_bidirectional_layers(cell, num_encoder_layers, encoder_units, dtype)

        source, x, mask = audio_inputs(features, speed=speed)
        target = token_input("target")
        x = LayerNormalization(epsilon=1e-3, dtype=dtype, name="normalization")(x)
        if augmentation is not None:
            x = augmentation(x, mask=mask)
        encoded, mask, last_states = encode_pyramid(layers, encoder_dropouts, x, mask)
        states = decoder.first_states(last_states[-1:])
        decoder_source = {"value": encoded, "value_mask": mask}
        logits, _ = decoder.logits(target, decoder_source, states)
        super().__init__(inputs={"source": source, "target": target}, outputs=logits, **kwargs)
        memory = {"mask": mask, **decoder.project(decoder_source), **states}
        self._set_parts(keras.Model(source, memory, name="encoder"), decoder)
        self._set_attention(
            lambda layers: decoder.logits(target, decoder_source, states, layers),
            num_layers=1,
            num_heads=1,
        )
        if ctc:
            # An attribute of the model, so that the model has its weights.
            self.ctc_logits = CTCLogits(vocabulary_size, dtype=dtype, name="ctc")
            outputs = {"logits": logits, "ctc": self.ctc_logits(encoded, mask=mask)}
            self._parts.with_ctc = keras.Model(self.input, outputs, name=f"{self.name}_with_ctc")

    @property
    def with_ctc(self) -> Any:
        """This model with the outputs `logits` and `ctc`, over the same weights.

        Raises AttributeError without `ctc`.
        """
        return self._parts.with_ctc
