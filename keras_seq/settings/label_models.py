"""Settings of models that predict labels: classifiers and taggers."""

from __future__ import annotations

from typing import Any, Literal

from keras_seq.settings.blocks import RecurrentStackSettings, TransformerStackSettings
from keras_seq.settings.section import ModelSection, a_choice, a_family, a_number, a_share

_POOLING = "How the steps become one vector: mean, max, or the last step that is not padding."
_CRF = "Predict all tags of a text jointly, with a conditional random field."


class LabelModelSettings(ModelSection):
    """The shape of a text encoder and of the layers after it."""

    def arguments(self) -> dict[str, Any]:
        return self.model_dump(include={"pooling", "hidden_units", "crf", "dropout"})

    def encoder_arguments(self) -> dict[str, Any]:
        return self.model_dump(exclude={"family", "pooling", "crf"})


class BagClassifierSettings(LabelModelSettings):
    """The shape of a `TextClassifier` with a `BagTextEncoder`."""

    model_class = "keras_seq.models:TextClassifier"
    encoder_class = "keras_seq.models:BagTextEncoder"
    family: Literal["classifier-bag"] = a_family("classifier-bag")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    hidden_units: int = a_number(256, 0, 16_384, "Width of the hidden layer; 0: no hidden layer.")
    dropout: float = a_share(0.3, "Dropout rate between layers.")

    def encoder_arguments(self) -> dict[str, Any]:
        return {"embedding_units": self.embedding_units}

    @property
    def output_width(self) -> int:
        return self.hidden_units or self.embedding_units

    @property
    def activations(self) -> int:
        return 2 * self.embedding_units

    def min_parameters(self) -> int:
        return self.embedding_units * (1 + self.hidden_units)


class RecurrentClassifierSettings(LabelModelSettings, RecurrentStackSettings):
    """The shape of a `TextClassifier` with a `RecurrentTextEncoder`."""

    model_class = "keras_seq.models:TextClassifier"
    encoder_class = "keras_seq.models:RecurrentTextEncoder"
    directions = 2
    family: Literal["classifier-rnn"] = a_family("classifier-rnn")
    pooling: Literal["last", "mean", "max"] = a_choice("max", _POOLING)


class TransformerClassifierSettings(LabelModelSettings, TransformerStackSettings):
    """The shape of a `TextClassifier` with a `TransformerTextEncoder`."""

    model_class = "keras_seq.models:TextClassifier"
    encoder_class = "keras_seq.models:TransformerTextEncoder"
    family: Literal["classifier-transformer"] = a_family("classifier-transformer")
    pooling: Literal["last", "mean", "max"] = a_choice("mean", _POOLING)


class RecurrentTaggerSettings(LabelModelSettings, RecurrentStackSettings):
    """The shape of a `TextTagger` with a `RecurrentTextEncoder`."""

    model_class = "keras_seq.models:TextTagger"
    encoder_class = "keras_seq.models:RecurrentTextEncoder"
    directions = 2
    family: Literal["tagger-rnn"] = a_family("tagger-rnn")
    crf: bool = a_choice(False, _CRF)


class TransformerTaggerSettings(LabelModelSettings, TransformerStackSettings):
    """The shape of a `TextTagger` with a `TransformerTextEncoder`."""

    model_class = "keras_seq.models:TextTagger"
    encoder_class = "keras_seq.models:TransformerTextEncoder"
    family: Literal["tagger-transformer"] = a_family("tagger-transformer")
    crf: bool = a_choice(False, _CRF)
