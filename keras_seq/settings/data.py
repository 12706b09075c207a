"""Settings of the text files."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from keras_seq.settings.section import Section, a_choice, a_number, a_text


class DataSettings(Section):
    """The files of training and validation text, and the rules for keeping pairs."""

    source: str | list[str] | None = a_text(
        "File of source sentences, one per line, plain or .gz; or a pattern or list of files."
    )
    target: str | list[str] | None = a_text("File of target sentences, parallel to `source`.")
    pairs: str | list[str] | None = a_text(
        "File of source<TAB>target lines, or CSV, instead of `source` and `target`; for speech of "
        "path<TAB>text, for wake-word of path<TAB>spans."
    )
    text: str | list[str] | None = a_text("File of lines, for language models and autoencoders.")
    labeled: str | list[str] | None = a_text(
        "File of text<TAB>label lines, or CSV; for taggers of text<TAB>tags, with one tag per word."
    )
    columns: str | None = a_text(
        "Columns of `pairs` or `labeled`, by number or header, such as source=1,target=3; pairs "
        "may have features=2 or target_language=2."
    )
    features_separator: str = Field(
        default=";",
        min_length=1,
        max_length=100,
        description="Separator of the features of a pair.",
    )
    temperature: float = a_number(
        1.0,
        1,
        100,
        "Temperature T of sampling languages, each in proportion to pairs^(1/T); 5 is usual.",
    )
    weights: str | list[str] | None = a_text(
        "File of numbers, the weight of each pair in the loss."
    )
    file_weights: list[float] | None = a_text("Weights of files, one number per file.")
    alignments: str | list[str] | None = a_text(
        "File of word alignments of each pair, such as `0-0 1-2`."
    )
    valid_source: str | None = a_text("File of source sentences for validation.")
    valid_target: str | None = a_text("File of target sentences for validation.")
    valid_pairs: str | None = a_text("File of source<TAB>target lines for validation.")
    valid_text: str | None = a_text("File of lines for validation.")
    valid_labeled: str | None = a_text("File of labeled lines for validation.")
    prepared: str | None = a_text("Directory made by `keras-seq prepare`, instead of text.")
    max_source_length: int = a_number(
        200, 1, 100_000, "Maximum source length of a pair, in tokens."
    )
    max_target_length: int = a_number(
        200, 1, 100_000, "Maximum target length of a pair, in tokens."
    )
    concatenation: float = a_number(
        0.0, 0, 100, "Added training pairs for each pair; each joins two random pairs."
    )
    sample_rate: int | None = Field(
        default=None,
        ge=1000,
        le=192_000,
        description="Samples per second that recordings are converted to; by default those of the "
        "first.",
    )
    max_seconds: float = a_number(30.0, 0.01, 3600, "Maximum duration of a recording, in seconds.")
    bucket_width: int = a_number(1, 1, 10_000, "Width of length buckets, in tokens.")
    share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of the training text to train on, a random part by the seed; the "
        "vocabulary and the validation text do not depend on it.",
    )
    packed: bool = a_choice(
        False, "Pack the lines of `text` into pieces of `max_target_length` tokens."
    )
    class_weights: Literal["none", "balanced"] = a_choice(
        "none", "Weights of lines by label; balanced: each label has the same total weight."
    )

    @property
    def has_features(self) -> bool:
        """True if the sources have features."""
        return self._has_column("has_features")

    @property
    def has_languages(self) -> bool:
        """True if the sources have target languages."""
        return self._has_column("has_languages")

    def _has_column(self, name: str) -> bool:
        from keras_seq.text import PAIR, parse_columns

        if self.columns is None or self.pairs is None:
            return False
        return bool(getattr(parse_columns(self.columns, PAIR), name))

    @model_validator(mode="after")
    def _weights_are_not_negative(self) -> DataSettings:
        if self.file_weights and not all(0 <= weight <= 1e9 for weight in self.file_weights):
            raise ValueError(
                f"file_weights: received {self.file_weights}, expected numbers from 0 to 1e9"
            )
        return self
