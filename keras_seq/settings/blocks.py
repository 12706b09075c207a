"""Base classes of model settings: Transformer blocks, recurrent layers."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from keras_seq.settings.section import ModelSection, a_choice, a_number, a_share


def block_activations(units: int, feedforward_units: int) -> int:
    """Approximate numbers that training stores for each token in a Transformer block."""
    return 16 * units + 3 * feedforward_units


def block_parameters(units: int, feedforward_units: int) -> int:
    """A lower bound of the number of weights of a Transformer block."""
    return 4 * units**2 + 2 * units * feedforward_units


def check_heads(section: ModelSection, heads: str, units: str) -> None:
    """Raises ValueError unless the setting `heads` divides the setting `units`."""
    if getattr(section, units) % getattr(section, heads):
        raise ValueError(
            f"{heads}: received {getattr(section, heads)}, expected a divisor of "
            f"model.{units} ({getattr(section, units)})"
        )


class TransformerBlockSettings(ModelSection):
    """The shape of a Transformer block."""

    units: int = a_number(256, 1, 16_384, "Width of the model.")
    feedforward_units: int = a_number(1024, 1, 65_536, "Inner width of the feed-forward layers.")
    num_heads: int = a_number(4, 1, 256, "Attention heads; must divide `units`.")
    dropout: float = a_share(0.1, "Dropout rate after each sublayer.")
    attention_dropout: float = a_share(0.1, "Dropout rate of attention weights.")
    activation_dropout: float = a_share(0.1, "Dropout rate inside the feed-forward layers.")
    layer_dropout: float = a_share(
        0.0, "Rate at which training leaves out a part of a block for a row of the batch."
    )
    activation: Literal["relu", "gelu", "swiglu", "geglu", "reglu"] = a_choice(
        "relu", "Activation of feed-forward layers; the last three are gated, with a third kernel."
    )
    norm: Literal["pre", "post"] = a_choice(
        "pre", "Normalization before (pre) or after (post) each sublayer."
    )
    normalization: Literal["layer", "rms"] = a_choice(
        "layer", "Layer normalization, or division by the root mean square."
    )
    position: Literal["sinusoidal", "learned", "rotary", "relative", "linear_biases"] = a_choice(
        "sinusoidal", "Positions: added to embeddings, or (the last three) in the self-attention."
    )
    max_positions: int = a_number(
        512, 2, 100_000, "Number of learned positions; ignored by other positions."
    )

    @property
    def min_token_parameters(self) -> int:
        return self.units

    @property
    def attention_heads(self) -> int:
        return self.num_heads

    @property
    def block_activations(self) -> int:
        return block_activations(self.units, self.feedforward_units)

    @property
    def block_parameters(self) -> int:
        return block_parameters(self.units, self.feedforward_units)

    @model_validator(mode="after")
    def _positions_fit_heads(self) -> Self:
        size = self.units // self.num_heads
        if self.position == "rotary" and size % 2:
            raise ValueError(
                f"position: received 'rotary', expected an even width of heads, but model.units / "
                f"model.num_heads is {size}"
            )
        return self

    @model_validator(mode="after")
    def _heads_divide_units(self) -> Self:
        check_heads(self, "num_heads", "units")
        return self


class TransformerStackSettings(TransformerBlockSettings):
    """The shape of a stack of Transformer blocks."""

    num_layers: int = a_number(2, 1, 100, "Number of layers.")

    @property
    def activations(self) -> int:
        return self.num_layers * self.block_activations

    def min_parameters(self) -> int:
        return self.num_layers * self.block_parameters


class RecurrentStackSettings(ModelSection):
    """The shape of a stack of recurrent layers; `directions` is 2 if bidirectional."""

    directions: ClassVar[int] = 1

    cell: Literal["gru", "lstm"] = a_choice("gru", "Recurrent cell.")
    num_layers: int = a_number(1, 1, 100, "Number of layers.")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    units: int = a_number(256, 1, 16_384, "Width of the model.")
    dropout: float = a_share(0.3, "Dropout rate between layers.")

    @property
    def min_token_parameters(self) -> int:
        return self.embedding_units

    @property
    def output_width(self) -> int:
        return self.directions * self.units

    @property
    def activations(self) -> int:
        return self.num_layers * 16 * self.directions * self.units

    def min_parameters(self) -> int:
        return self.num_layers * 3 * self.directions * self.units**2


class RecurrentCoderSettings(ModelSection):
    """The shape of a recurrent encoder and decoder."""

    cell: Literal["gru", "lstm"] = a_choice("gru", "Recurrent cell.")
    num_encoder_layers: int = a_number(
        1, 1, 100, "Encoder layers; recurrent ones are bidirectional."
    )
    num_decoder_layers: int = a_number(1, 1, 100, "Decoder layers.")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    encoder_units: int = a_number(256, 1, 16_384, "Width of the encoder, in each direction.")
    decoder_units: int = a_number(512, 1, 16_384, "Width of the decoder.")
    tie_output: bool = a_choice(True, "Share the embedding table with the output layer.")
    dropout: float = a_share(0.2, "Dropout rate between layers.")

    @property
    def min_token_parameters(self) -> int:
        return self.embedding_units

    @property
    def output_width(self) -> int:
        return self.decoder_units

    @property
    def activations(self) -> int:
        layers = self.num_encoder_layers + self.num_decoder_layers
        return layers * 16 * (self.encoder_units + self.decoder_units)

    def min_parameters(self) -> int:
        encoder = self.num_encoder_layers * 3 * self.encoder_units**2
        return encoder + self.num_decoder_layers * 3 * self.decoder_units**2
