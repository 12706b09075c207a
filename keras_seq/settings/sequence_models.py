"""The shapes of models that write text: translations and language models."""

from __future__ import annotations

from typing import Literal

from keras_seq.settings.blocks import TransformerBlockSettings, TransformerStackSettings
from keras_seq.settings.section import ModelSection, a_choice, a_number, a_share

_MEMBERS = "Copies of the model, trained together, whose probabilities are averaged."


class TransformerSettings(TransformerBlockSettings):
    """The Transformer's shape."""

    model_class = "keras_seq.models:Transformer"
    family: Literal["transformer"] = a_choice("transformer", "Family of the model.")
    num_encoder_layers: int = a_number(3, 1, 100, "Encoder blocks.")
    num_decoder_layers: int = a_number(3, 1, 100, "Decoder blocks.")
    members: int = a_number(1, 1, 100, _MEMBERS)

    @property
    def activations(self) -> int:
        """Numbers that a training keeps for each token, about; those of the output left out."""
        layers = self.num_encoder_layers + 2 * self.num_decoder_layers
        return layers * (16 * self.units + 3 * self.feedforward_units)

    def min_parameters(self) -> int:
        """Fewer weights than a model of these settings can have."""
        layers = self.num_encoder_layers + self.num_decoder_layers
        return layers * (4 * self.units**2 + 2 * self.units * self.feedforward_units)


class RecurrentSettings(ModelSection):
    """The recurrent model's shape."""

    model_class = "keras_seq.models:RecurrentSeq2Seq"
    family: Literal["rnn"] = a_choice("rnn", "Family of the model.")
    encoder: Literal["recurrent", "convolutional"] = a_choice(
        "recurrent", "How the source is read; convolutional: gated convolutions of three steps."
    )
    cell: Literal["gru", "lstm"] = a_choice("gru", "Recurrent cell.")
    num_encoder_layers: int = a_number(
        1, 1, 100, "Encoder layers; recurrent ones read in both directions."
    )
    num_decoder_layers: int = a_number(1, 1, 100, "Decoder layers.")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    encoder_units: int = a_number(256, 1, 16_384, "Width of the encoder, in each direction.")
    decoder_units: int = a_number(512, 1, 16_384, "Width of the decoder.")
    attention: Literal["bahdanau", "luong"] = a_choice("bahdanau", "Attention.")
    attention_units: int = a_number(256, 1, 16_384, "Width of the attention's comparison.")
    input_feeding: bool = a_choice(True, "Feed the attended vector to the next step.")
    context: Literal["every_step", "init"] = a_choice(
        "every_step", "Whether the decoder sees the source at each step."
    )
    bridge: Literal["copy", "dense", "zero"] = a_choice(
        "dense", "How the decoder's first state comes from the encoder's last."
    )
    tie_output: bool = a_choice(True, "Score words against the table of their embeddings.")
    dropout: float = a_share(0.2, "Dropout between layers.")
    members: int = a_number(1, 1, 100, _MEMBERS)

    @property
    def output_width(self) -> int:
        """Of the vectors that tokens are scored from."""
        return self.decoder_units

    @property
    def activations(self) -> int:
        """Numbers that a training keeps for each token, about; those of the output left out."""
        layers = self.num_encoder_layers + self.num_decoder_layers
        return layers * 16 * (self.encoder_units + self.decoder_units)

    def min_parameters(self) -> int:
        """Fewer weights than a model of these settings can have."""
        encoder = self.num_encoder_layers * 3 * self.encoder_units**2
        return encoder + self.num_decoder_layers * 3 * self.decoder_units**2


class TransformerLanguageModelSettings(TransformerStackSettings):
    """The shape of a Transformer without a source."""

    model_class = "keras_seq.models:TransformerLanguageModel"
    family: Literal["lm-transformer"] = a_choice("lm-transformer", "Family of the model.")
    num_layers: int = a_number(4, 1, 100, "Blocks or recurrent layers of a language model.")


class RecurrentLanguageModelSettings(ModelSection):
    """The shape of a recurrent language model."""

    model_class = "keras_seq.models:RecurrentLanguageModel"
    family: Literal["lm-rnn"] = a_choice("lm-rnn", "Family of the model.")
    cell: Literal["gru", "lstm"] = a_choice("lstm", "Recurrent cell.")
    num_layers: int = a_number(1, 1, 100, "Blocks or recurrent layers of a language model.")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    units: int = a_number(512, 1, 16_384, "Width of the model.")
    tie_output: bool = a_choice(True, "Score words against the table of their embeddings.")
    dropout: float = a_share(0.2, "Dropout between layers.")

    @property
    def activations(self) -> int:
        """Numbers that a training keeps for each token, about; those of the output left out."""
        return self.num_layers * 16 * self.units

    def min_parameters(self) -> int:
        """Fewer weights than a model of these settings can have."""
        return self.num_layers * 3 * self.units**2
