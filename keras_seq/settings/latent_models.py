"""The shapes of models with a latent variable."""

from __future__ import annotations

from typing import Literal

from keras_seq.settings.section import ModelSection, a_choice, a_number, a_share


class SequenceVAESettings(ModelSection):
    """The shape of a variational autoencoder of text."""

    model_class = "keras_seq.models:SequenceVAE"
    family: Literal["vae-rnn"] = a_choice("vae-rnn", "Family of the model.")
    latent_units: int = a_number(32, 1, 16_384, "Numbers that a line of text becomes.")
    cell: Literal["gru", "lstm"] = a_choice("gru", "Recurrent cell.")
    num_encoder_layers: int = a_number(
        1, 1, 100, "Encoder layers; recurrent ones read in both directions."
    )
    num_decoder_layers: int = a_number(1, 1, 100, "Decoder layers.")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    encoder_units: int = a_number(256, 1, 16_384, "Width of the encoder, in each direction.")
    decoder_units: int = a_number(512, 1, 16_384, "Width of the decoder.")
    tie_output: bool = a_choice(True, "Score words against the table of their embeddings.")
    dropout: float = a_share(0.2, "Dropout between layers.")

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
