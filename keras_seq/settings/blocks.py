"""What the settings of all models of Transformer blocks have in common."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from keras_seq.settings.section import ModelSection, a_choice, a_number, a_share


class TransformerBlockSettings(ModelSection):
    """The shape of a block."""

    units: int = a_number(256, 1, 16_384, "Width of the model.")
    feedforward_units: int = a_number(1024, 1, 65_536, "Inner width of the feed-forward parts.")
    num_heads: int = a_number(4, 1, 256, "Attention heads; divides `units`.")
    dropout: float = a_share(0.1, "Dropout after each part.")
    attention_dropout: float = a_share(0.1, "Dropout of attention weights.")
    activation_dropout: float = a_share(0.1, "Dropout inside the feed-forward parts.")
    activation: Literal["relu", "gelu"] = a_choice("relu", "Feed-forward activation.")
    norm: Literal["pre", "post"] = a_choice("pre", "Where each block normalizes.")

    @model_validator(mode="after")
    def _heads_divide_units(self) -> Self:
        if self.units % self.num_heads:
            raise ValueError(
                f"num_heads: received {self.num_heads}, expected a divisor of "
                f"model.units ({self.units})"
            )
        return self


class TransformerStackSettings(TransformerBlockSettings):
    """The shape of blocks one above the other."""

    num_layers: int = a_number(2, 1, 100, "Blocks or recurrent layers of a model without decoder.")

    @property
    def activations(self) -> int:
        """Numbers that a training keeps for each token, about; those of the output left out."""
        return self.num_layers * (16 * self.units + 3 * self.feedforward_units)

    def min_parameters(self) -> int:
        """Fewer weights than a model of these settings can have."""
        return self.num_layers * (4 * self.units**2 + 2 * self.units * self.feedforward_units)
