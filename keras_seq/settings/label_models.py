"""The shapes of models that answer with labels: classifiers and taggers."""

from __future__ import annotations

from typing import Literal

from keras_seq.settings.blocks import TransformerStackSettings
from keras_seq.settings.section import ModelSection, a_choice, a_number, a_share

_POOLING = "How steps become one vector: mean, max, or the last that is not padding."
_FIELD = "Tags are chosen together, by a conditional random field."


class _RecurrentEncoderSettings(ModelSection):
    cell: Literal["gru", "lstm"] = a_choice("gru", "Recurrent cell.")
    num_layers: int = a_number(1, 1, 100, "Blocks or recurrent layers of a model without decoder.")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    units: int = a_number(256, 1, 16_384, "Width of the model.")
    dropout: float = a_share(0.3, "Dropout between layers.")

    @property
    def output_width(self) -> int:
        """Of the vectors that labels are scored from."""
        return 2 * self.units

    @property
    def activations(self) -> int:
        """Numbers that a training keeps for each token, about."""
        return self.num_layers * 32 * self.units

    def min_parameters(self) -> int:
        """Fewer weights than a model of these settings can have."""
        return self.num_layers * 6 * self.units**2


class BagClassifierSettings(ModelSection):
    """The shape of a classifier of the mean of the words, without their order."""

    model_class = "keras_seq.models:BagClassifier"
    family: Literal["classifier-bag"] = a_choice("classifier-bag", "Family of the model.")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    hidden_units: int = a_number(256, 0, 16_384, "Width of the layer behind the mean; 0: none.")
    dropout: float = a_share(0.3, "Dropout between layers.")

    @property
    def output_width(self) -> int:
        """Of the vectors that labels are scored from."""
        return self.hidden_units or self.embedding_units

    @property
    def activations(self) -> int:
        """Numbers that a training keeps for each token, about."""
        return 2 * self.embedding_units

    def min_parameters(self) -> int:
        """Fewer weights than a model of these settings can have."""
        return self.embedding_units * (1 + self.hidden_units)


class RecurrentClassifierSettings(_RecurrentEncoderSettings):
    """The shape of a classifier that reads in both directions."""

    model_class = "keras_seq.models:RecurrentClassifier"
    family: Literal["classifier-rnn"] = a_choice("classifier-rnn", "Family of the model.")
    pooling: Literal["last", "mean", "max"] = a_choice("max", _POOLING)


class TransformerClassifierSettings(TransformerStackSettings):
    """The shape of a classifier of Transformer blocks."""

    model_class = "keras_seq.models:TransformerClassifier"
    family: Literal["classifier-transformer"] = a_choice(
        "classifier-transformer", "Family of the model."
    )
    pooling: Literal["last", "mean", "max"] = a_choice("mean", _POOLING)


class RecurrentTaggerSettings(_RecurrentEncoderSettings):
    """The shape of a tagger that reads in both directions."""

    model_class = "keras_seq.models:RecurrentTagger"
    family: Literal["tagger-rnn"] = a_choice("tagger-rnn", "Family of the model.")
    crf: bool = a_choice(False, _FIELD)


class TransformerTaggerSettings(TransformerStackSettings):
    """The shape of a tagger of Transformer blocks."""

    model_class = "keras_seq.models:TransformerTagger"
    family: Literal["tagger-transformer"] = a_choice("tagger-transformer", "Family of the model.")
    crf: bool = a_choice(False, _FIELD)
