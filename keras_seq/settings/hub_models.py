"""Settings of models with a pretrained encoder of KerasHub."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator

from keras_seq.settings.blocks import (
    TransformerBlockSettings,
    block_activations,
    block_parameters,
    check_heads,
)
from keras_seq.settings.section import ModelSection, a_choice, a_family, a_number, a_share


class BackboneSettings(ModelSection):
    """The shape of an encoder of KerasHub. With `training.from_hub`, the preset determines it."""

    encoder_class = "keras_seq.models:BackboneTextEncoder"

    backbone: Literal["bert", "distil_bert"] = a_choice("bert", "Kind of the pretrained encoder.")
    backbone_layers: int = a_number(12, 1, 200, "Blocks of the pretrained encoder.")
    backbone_units: int = a_number(768, 1, 16_384, "Width of the pretrained encoder.")
    backbone_feedforward_units: int = a_number(
        3072, 1, 65_536, "Inner width of the pretrained encoder's feed-forward layers."
    )
    backbone_heads: int = a_number(12, 1, 256, "Attention heads of the pretrained encoder.")
    backbone_positions: int = a_number(
        512, 3, 100_000, "Positions of the pretrained encoder, two of them for special tokens."
    )
    backbone_dropout: float = a_share(0.1, "Dropout rate inside the pretrained encoder.")

    def arguments(self) -> dict[str, Any]:
        return self.model_dump(exclude={*BackboneSettings.model_fields})

    def encoder_arguments(self) -> dict[str, Any]:
        return {
            "backbone": self.backbone,
            "num_layers": self.backbone_layers,
            "units": self.backbone_units,
            "feedforward_units": self.backbone_feedforward_units,
            "num_heads": self.backbone_heads,
            "positions": self.backbone_positions,
            "dropout": self.backbone_dropout,
        }

    @property
    def embedding_width(self) -> int:
        return self.backbone_units

    @property
    def output_width(self) -> int:
        return self.backbone_units

    @property
    def activations(self) -> int:
        return self.backbone_layers * block_activations(
            self.backbone_units, self.backbone_feedforward_units
        )

    def min_parameters(self) -> int:
        return self.min_backbone_parameters()

    def min_backbone_parameters(self) -> int:
        """A lower bound of the number of weights of the pretrained encoder."""
        return self.backbone_layers * block_parameters(
            self.backbone_units, self.backbone_feedforward_units
        )

    @model_validator(mode="after")
    def _backbone_heads_divide_units(self) -> Self:
        check_heads(self, "backbone_heads", "backbone_units")
        return self


class BackboneClassifierSettings(BackboneSettings):
    """The shape of a `TextClassifier` with a `BackboneTextEncoder`."""

    model_class = "keras_seq.models:TextClassifier"
    family: Literal["classifier-hub"] = a_family("classifier-hub")
    pooling: Literal["first", "mean", "max"] = a_choice(
        "first", "How the steps become one vector: the first (the encoder's own), mean or max."
    )
    dropout: float = a_share(0.1, "Dropout rate of the pooled vector.")


class BackboneSeq2SeqSettings(TransformerBlockSettings, BackboneSettings):
    """The shape of a `BackboneSeq2Seq` with a `BackboneTextEncoder`."""

    model_class = "keras_seq.models:BackboneSeq2Seq"
    family: Literal["transformer-hub"] = a_family("transformer-hub")
    num_decoder_layers: int = a_number(3, 1, 100, "Decoder blocks.")

    @property
    def embedding_width(self) -> int:
        return self.units

    @property
    def output_width(self) -> int:
        return self.units

    @property
    def activations(self) -> int:
        return super().activations + 2 * self.num_decoder_layers * self.block_activations

    def min_parameters(self) -> int:
        return self.min_backbone_parameters() + self.num_decoder_layers * self.block_parameters
