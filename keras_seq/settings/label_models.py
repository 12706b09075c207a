"""Settings of models that predict labels: classifiers and taggers."""

from __future__ import annotations

from typing import Literal

from keras_seq.settings.blocks import RecurrentStackSettings, TransformerStackSettings
from keras_seq.settings.section import ModelSection, a_choice, a_family, a_number, a_share

_POOLING = "How the steps become one vector: mean, max, or the last step that is not padding."
_CRF = "Predict all tags of a text jointly, with a conditional random field."


class BagClassifierSettings(ModelSection):
    """The shape of a `BagClassifier`."""

    model_class = "keras_seq.models:BagClassifier"
    family: Literal["classifier-bag"] = a_family("classifier-bag")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    hidden_units: int = a_number(256, 0, 16_384, "Width of the hidden layer; 0: no hidden layer.")
    dropout: float = a_share(0.3, "Dropout rate between layers.")

    @property
    def output_width(self) -> int:
        return self.hidden_units or self.embedding_units

    @property
    def activations(self) -> int:
        return 2 * self.embedding_units

    def min_parameters(self) -> int:
        return self.embedding_units * (1 + self.hidden_units)


class RecurrentClassifierSettings(RecurrentStackSettings):
    """The shape of a `RecurrentClassifier`."""

    model_class = "keras_seq.models:RecurrentClassifier"
    directions = 2
    family: Literal["classifier-rnn"] = a_family("classifier-rnn")
    pooling: Literal["last", "mean", "max"] = a_choice("max", _POOLING)


class TransformerClassifierSettings(TransformerStackSettings):
    """The shape of a `TransformerClassifier`."""

    model_class = "keras_seq.models:TransformerClassifier"
    family: Literal["classifier-transformer"] = a_family("classifier-transformer")
    pooling: Literal["last", "mean", "max"] = a_choice("mean", _POOLING)


class RecurrentTaggerSettings(RecurrentStackSettings):
    """The shape of a `RecurrentTagger`."""

    model_class = "keras_seq.models:RecurrentTagger"
    directions = 2
    family: Literal["tagger-rnn"] = a_family("tagger-rnn")
    crf: bool = a_choice(False, _CRF)


class TransformerTaggerSettings(TransformerStackSettings):
    """The shape of a `TransformerTagger`."""

    model_class = "keras_seq.models:TransformerTagger"
    family: Literal["tagger-transformer"] = a_family("tagger-transformer")
    crf: bool = a_choice(False, _CRF)
