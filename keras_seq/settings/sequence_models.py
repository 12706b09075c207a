"""Settings of models that generate text: translation models, language models, VAEs."""

from __future__ import annotations

import warnings
from typing import Literal

from keras_seq.settings.blocks import (
    RecurrentCoderSettings,
    RecurrentStackSettings,
    TransformerBlockSettings,
    TransformerStackSettings,
)
from keras_seq.settings.section import ModelSection, a_choice, a_family, a_number, a_share

_MEMBERS = "Copies of the model that are trained together; their probabilities are averaged."


with warnings.catch_warnings():
    # The field hides a deprecated method of pydantic, which nothing calls.
    warnings.filterwarnings("ignore", 'Field name "copy"')

    class TransductionSettings(ModelSection):
        """Settings of models that read a source and can copy its tokens."""

        copy: bool = a_choice(  # type: ignore[assignment]
            False, "Pointer-generator: copy source tokens; both sides then have one vocabulary."
        )
        feature_encoder: Literal["none", "linear", "recurrent", "transformer"] = a_choice(
            "none", "Encoder of the features of data.columns; none: they are source tokens."
        )


class TransformerSettings(TransductionSettings, TransformerBlockSettings):
    """The shape of a `Transformer`."""

    model_class = "keras_seq.models:Transformer"
    family: Literal["transformer"] = a_family("transformer")
    num_encoder_layers: int = a_number(3, 1, 100, "Encoder blocks.")
    num_decoder_layers: int = a_number(3, 1, 100, "Decoder blocks.")
    cross_position: Literal["none", "rotary"] = a_choice(
        "none",
        "Positions of the attention to the source; rotary: for pairs that correspond in order.",
    )
    members: int = a_number(1, 1, 100, _MEMBERS)

    @property
    def activations(self) -> int:
        return (self.num_encoder_layers + 2 * self.num_decoder_layers) * self.block_activations

    def min_parameters(self) -> int:
        return (self.num_encoder_layers + self.num_decoder_layers) * self.block_parameters


class RecurrentSettings(TransductionSettings, RecurrentCoderSettings):
    """The shape of a `RecurrentSeq2Seq`."""

    model_class = "keras_seq.models:RecurrentSeq2Seq"
    family: Literal["rnn"] = a_family("rnn")
    encoder: Literal["recurrent", "convolutional"] = a_choice(
        "recurrent", "Kind of encoder; convolutional: gated convolutions of width 3."
    )
    attention: Literal[
        "bahdanau", "luong", "location", "bahdanau_monotonic", "luong_monotonic", "hard"
    ] = a_choice("bahdanau", "Kind of attention; hard: sums over all monotonic alignments.")
    attention_units: int = a_number(256, 1, 16_384, "Width of the attention scores' hidden layer.")
    attention_window: int = a_number(
        0, 0, 1000, "Hard attention: largest move in the source; 0: any move to the right."
    )
    input_feeding: bool = a_choice(True, "Feed the attentional vector to the next step.")
    context: Literal["every_step", "init"] = a_choice(
        "every_step", "Whether the decoder sees the source at each step, or only at its start."
    )
    bridge: Literal["copy", "dense", "zero"] = a_choice(
        "dense", "How the encoder's final state becomes the decoder's initial state."
    )
    members: int = a_number(1, 1, 100, _MEMBERS)


class TransformerLanguageModelSettings(TransformerStackSettings):
    """The shape of a `TransformerLanguageModel`."""

    model_class = "keras_seq.models:TransformerLanguageModel"
    family: Literal["lm-transformer"] = a_family("lm-transformer")
    num_layers: int = a_number(4, 1, 100, "Number of layers.")


class RecurrentLanguageModelSettings(RecurrentStackSettings):
    """The shape of a `RecurrentLanguageModel`."""

    model_class = "keras_seq.models:RecurrentLanguageModel"
    family: Literal["lm-rnn"] = a_family("lm-rnn")
    cell: Literal["gru", "lstm"] = a_choice("lstm", "Recurrent cell.")
    units: int = a_number(512, 1, 16_384, "Width of the model.")
    tie_output: bool = a_choice(True, "Share the embedding table with the output layer.")
    dropout: float = a_share(0.2, "Dropout rate between layers.")


class SequenceVAESettings(RecurrentCoderSettings):
    """The shape of a `SequenceVAE`."""

    model_class = "keras_seq.models:SequenceVAE"
    family: Literal["vae-rnn"] = a_family("vae-rnn")
    latent_units: int = a_number(32, 1, 16_384, "Width of the latent code.")
