"""The shapes of models with an encoder of KerasHub."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from keras_seq.settings.blocks import TransformerBlockSettings
from keras_seq.settings.section import ModelSection, a_choice, a_number, a_share


class BackboneSettings(ModelSection):
    """The shape of an encoder of KerasHub; that of `training.from_hub` where it is given."""

    backbone: Literal["bert", "distil_bert"] = a_choice("bert", "Kind of the pretrained encoder.")
    backbone_layers: int = a_number(12, 1, 200, "Blocks of the pretrained encoder.")
    backbone_units: int = a_number(768, 1, 16_384, "Width of the pretrained encoder.")
    backbone_feedforward_units: int = a_number(
        3072, 1, 65_536, "Inner width of its feed-forward parts."
    )
    backbone_heads: int = a_number(12, 1, 256, "Its attention heads.")
    backbone_positions: int = a_number(
        512, 3, 100_000, "Its longest text in tokens, with one in front and one behind."
    )
    backbone_dropout: float = a_share(0.1, "Dropout inside it.")

    @property
    def embedding_width(self) -> int:
        """Of the vectors that source tokens are embedded in."""
        return self.backbone_units

    @property
    def backbone_activations(self) -> int:
        """Numbers that a training keeps for each source token, about."""
        return self.backbone_layers * (
            16 * self.backbone_units + 3 * self.backbone_feedforward_units
        )

    def min_backbone_parameters(self) -> int:
        """Fewer weights than an encoder of these settings can have."""
        units = self.backbone_units
        return self.backbone_layers * (4 * units**2 + 2 * units * self.backbone_feedforward_units)

    @model_validator(mode="after")
    def _backbone_heads_divide_units(self) -> Self:
        if self.backbone_units % self.backbone_heads:
            raise ValueError(
                f"backbone_heads: received {self.backbone_heads}, expected a divisor of "
                f"model.backbone_units ({self.backbone_units})"
            )
        return self


class BackboneClassifierSettings(BackboneSettings):
    """The shape of a classifier of a pretrained encoder."""

    model_class = "keras_seq.models:BackboneClassifier"
    family: Literal["classifier-hub"] = a_choice("classifier-hub", "Family of the model.")
    pooling: Literal["first", "mean", "max"] = a_choice(
        "first", "What is classified: the encoder's own first step, or mean or max of the others."
    )
    dropout: float = a_share(0.1, "Dropout on what is classified.")

    @property
    def output_width(self) -> int:
        """Of the vectors that labels are scored from."""
        return self.backbone_units

    @property
    def activations(self) -> int:
        """Numbers that a training keeps for each token, about."""
        return self.backbone_activations

    def min_parameters(self) -> int:
        """Fewer weights than a model of these settings can have."""
        return self.min_backbone_parameters()


class BackboneSeq2SeqSettings(TransformerBlockSettings, BackboneSettings):
    """The shape of a pretrained encoder with the decoder of a Transformer."""

    model_class = "keras_seq.models:BackboneSeq2Seq"
    family: Literal["transformer-hub"] = a_choice("transformer-hub", "Family of the model.")
    num_decoder_layers: int = a_number(3, 1, 100, "Decoder blocks.")

    @property
    def embedding_width(self) -> int:
        """Of the vectors that target tokens are embedded in."""
        return self.units

    @property
    def activations(self) -> int:
        """Numbers that a training keeps for each token, about; those of the output left out."""
        layer = 16 * self.units + 3 * self.feedforward_units
        return self.backbone_activations + 2 * self.num_decoder_layers * layer

    def min_parameters(self) -> int:
        """Fewer weights than a model of these settings can have."""
        layer = 4 * self.units**2 + 2 * self.units * self.feedforward_units
        return self.min_backbone_parameters() + self.num_decoder_layers * layer
