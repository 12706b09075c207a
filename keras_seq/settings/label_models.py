"""Settings of models that predict labels: classifiers and taggers."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from keras_seq.settings.blocks import RecurrentStackSettings, TransformerStackSettings
from keras_seq.settings.section import ModelSection, a_choice, a_family, a_number, a_share

_POOLING = "How the steps become one vector: mean, max, or the last step that is not padding."
_MEMBERS = "Copies of the model that are trained together; their probabilities are averaged."
_FILTERS = "Filters, of each of two widths, over the characters of a word; 0: none."
_FORMS = "Width of each feature of a word's beginning, ending and shape; 0: none."
_CRF = "Predict all tags of a text jointly, with a conditional random field."


class LabelModelSettings(ModelSection):
    """The shape of a text encoder and of the layers after it."""

    def arguments(self) -> dict[str, Any]:
        return self.model_dump(include={"pooling", "hidden_units", "crf", "dropout"})

    def encoder_arguments(self) -> dict[str, Any]:
        return self.model_dump(exclude={"family", "pooling", "crf", "members"})


class BagClassifierSettings(LabelModelSettings):
    """The shape of a `TextClassifier` with a `BagTextEncoder`."""

    model_class = "keras_seq.models:TextClassifier"
    encoder_class = "keras_seq.models:BagTextEncoder"
    family: Literal["classifier-bag"] = a_family("classifier-bag")
    embedding_units: int = a_number(256, 1, 16_384, "Width of the embeddings.")
    ngrams: int = a_number(1, 1, 5, "Tokens of the longest n-grams; 1: no n-grams.")
    ngram_rows: int = a_number(2**17, 2, 2**20, "Vectors that the n-grams of one length share.")
    hidden_units: int = a_number(256, 0, 16_384, "Width of the hidden layer; 0: no hidden layer.")
    dropout: float = a_share(0.3, "Dropout rate between layers.")
    members: int = a_number(1, 1, 100, _MEMBERS)

    def encoder_arguments(self) -> dict[str, Any]:
        return self.model_dump(include={"embedding_units", "ngrams", "ngram_rows"})

    @property
    def min_token_parameters(self) -> int:
        return self.embedding_units

    @property
    def output_width(self) -> int:
        return self.hidden_units or self.embedding_units

    @property
    def activations(self) -> int:
        return 2 * self.embedding_units

    def min_parameters(self) -> int:
        ngrams = (self.ngrams - 1) * self.ngram_rows
        return self.embedding_units * (1 + self.hidden_units + ngrams)


class ConvolutionalClassifierSettings(LabelModelSettings):
    """The shape of a `TextClassifier` with a `ConvolutionalTextEncoder`."""

    model_class = "keras_seq.models:TextClassifier"
    encoder_class = "keras_seq.models:ConvolutionalTextEncoder"
    family: Literal["classifier-cnn"] = a_family("classifier-cnn")
    embedding_units: int = a_number(128, 1, 16_384, "Width of the embeddings.")
    widths: list[int] = Field(
        default=[3, 4, 5],
        min_length=1,
        max_length=20,
        description="Tokens that the filters cover, a number for each kind of filter.",
    )
    filters: int = a_number(100, 1, 16_384, "Filters of each width.")
    character_filters: int = a_number(0, 0, 4096, _FILTERS)
    form_units: int = a_number(0, 0, 4096, _FORMS)
    pooling: Literal["mean", "max"] = a_choice("max", _POOLING)
    dropout: float = a_share(0.5, "Dropout rate before the logits.")
    embedding_dropout: float = a_share(0.3, "Dropout rate of embeddings.")
    members: int = a_number(1, 1, 100, _MEMBERS)

    @model_validator(mode="after")
    def _widths_differ(self) -> Self:
        widths = self.widths
        if len(set(widths)) < len(widths) or not all(1 <= width <= 100 for width in widths):
            raise ValueError(f"widths: received {widths}, expected different numbers from 1 to 100")
        return self

    def encoder_arguments(self) -> dict[str, Any]:
        arguments = super().encoder_arguments()
        return arguments | {"dropout": arguments.pop("embedding_dropout")}

    @property
    def min_token_parameters(self) -> int:
        return self.embedding_units

    @property
    def output_width(self) -> int:
        return len(self.widths) * self.filters

    @property
    def activations(self) -> int:
        return 2 * self.embedding_units + 3 * self.output_width

    def min_parameters(self) -> int:
        return sum(self.widths) * self.filters * self.embedding_units


class RecurrentClassifierSettings(LabelModelSettings, RecurrentStackSettings):
    """The shape of a `TextClassifier` with a `RecurrentTextEncoder`."""

    model_class = "keras_seq.models:TextClassifier"
    encoder_class = "keras_seq.models:RecurrentTextEncoder"
    directions = 2
    family: Literal["classifier-rnn"] = a_family("classifier-rnn")
    pooling: Literal["last", "mean", "max"] = a_choice("max", _POOLING)
    character_filters: int = a_number(0, 0, 4096, _FILTERS)
    form_units: int = a_number(0, 0, 4096, _FORMS)
    members: int = a_number(1, 1, 100, _MEMBERS)


class TransformerClassifierSettings(LabelModelSettings, TransformerStackSettings):
    """The shape of a `TextClassifier` with a `TransformerTextEncoder`."""

    model_class = "keras_seq.models:TextClassifier"
    encoder_class = "keras_seq.models:TransformerTextEncoder"
    family: Literal["classifier-transformer"] = a_family("classifier-transformer")
    pooling: Literal["last", "mean", "max"] = a_choice("mean", _POOLING)
    character_filters: int = a_number(0, 0, 4096, _FILTERS)
    form_units: int = a_number(0, 0, 4096, _FORMS)
    members: int = a_number(1, 1, 100, _MEMBERS)


class RecurrentTaggerSettings(LabelModelSettings, RecurrentStackSettings):
    """The shape of a `TextTagger` with a `RecurrentTextEncoder`."""

    model_class = "keras_seq.models:TextTagger"
    encoder_class = "keras_seq.models:RecurrentTextEncoder"
    directions = 2
    family: Literal["tagger-rnn"] = a_family("tagger-rnn")
    character_filters: int = a_number(0, 0, 4096, _FILTERS)
    form_units: int = a_number(0, 0, 4096, _FORMS)
    crf: bool = a_choice(False, _CRF)


class TransformerTaggerSettings(LabelModelSettings, TransformerStackSettings):
    """The shape of a `TextTagger` with a `TransformerTextEncoder`."""

    model_class = "keras_seq.models:TextTagger"
    encoder_class = "keras_seq.models:TransformerTextEncoder"
    family: Literal["tagger-transformer"] = a_family("tagger-transformer")
    character_filters: int = a_number(0, 0, 4096, _FILTERS)
    form_units: int = a_number(0, 0, 4096, _FORMS)
    crf: bool = a_choice(False, _CRF)
