"""Settings of the tokenizers and vocabularies."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from keras_seq.plugins import added
from keras_seq.plugins.registry import reserve
from keras_seq.settings.errors import choices, show
from keras_seq.settings.section import Section, a_choice, a_number, a_text, as_list

Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = ("source", "target")
SUBWORDS = ("unigram", "bpe")

_KINDS = ("auto", "unigram", "bpe", "char", "word", "byte")
reserve("vocabulary", _KINDS)
Forms = Literal["auto", "none", "nfc", "nfd", "nfkc"]

_KIND = "Units: subwords (unigram or bpe), char, word or byte; auto: chosen by the training text."
_SIZE = "Maximum number of entries. Of characters and words, the most frequent are used."
_MIN_COUNT = "How often a word or character must occur in the training text to be known."
_NORMALIZATION = (
    "Unicode normalization: none, nfc, nfd or nfkc; auto: nfc, or nfd if that makes the alphabet "
    "small."
)
_LOWERCASE = "Lowercase the text."
_SEPARATOR = "Separator of words, for kind word."
_SYMBOLS = "String that is always one token, such as a tag; or a list of such strings."
_MODEL = "Vocabulary to import: a SentencePiece model or a Hugging Face tokenizer.json."


def _check_kind(kind: str | None) -> None:
    known = (*_KINDS, *added("vocabulary"))
    if kind is not None and kind not in known:
        raise ValueError(f"kind: received {show(kind)}, expected {choices(known)}")


def _check(symbols: str | list[str] | None, separator: str | None) -> None:
    if not symbols and separator in (None, " "):
        return
    # Imports SentencePiece only if needed.
    from keras_seq.text import TextRules, check_symbols

    check_symbols(as_list(symbols))
    if separator is not None:
        TextRules("word", separator=separator)


class VocabularySettings(Section):
    """The vocabulary of one side. None means the value of both sides."""

    kind: str | None = a_choice(None, _KIND)
    size: int | None = a_number(None, 261, 1_000_000, _SIZE)
    min_count: int | None = a_number(None, 1, 1_000_000, _MIN_COUNT)
    normalization: Forms | None = a_choice(None, _NORMALIZATION)
    lowercase: bool | None = a_choice(None, _LOWERCASE)
    separator: str | None = Field(
        default=None, min_length=1, max_length=100, description=_SEPARATOR
    )
    symbols: str | list[str] | None = a_text(_SYMBOLS)
    model: str | None = a_text(_MODEL)

    @model_validator(mode="after")
    def _is_possible(self) -> VocabularySettings:
        _check_kind(self.kind)
        _check(self.symbols, self.separator)
        return self


class TokenizerSettings(Section):
    """The vocabularies of both sides."""

    kind: str = a_choice("auto", _KIND)
    size: int = a_number(8000, 261, 1_000_000, _SIZE)
    min_count: int = a_number(1, 1, 1_000_000, _MIN_COUNT)
    joint: bool = a_choice(
        True, "Share one vocabulary if both sides have the same kind of subwords."
    )
    normalization: Forms = a_choice("auto", _NORMALIZATION)
    lowercase: bool = a_choice(False, _LOWERCASE)
    separator: str = Field(default=" ", min_length=1, max_length=100, description=_SEPARATOR)
    symbols: str | list[str] | None = a_text(_SYMBOLS)
    model: str | None = a_text(_MODEL)
    source: VocabularySettings = VocabularySettings()
    target: VocabularySettings = VocabularySettings()

    @field_validator("source", "target", mode="before")
    @classmethod
    def _is_a_table(cls, value: Any) -> Any:
        # Stored settings omit None.
        return VocabularySettings() if value is None else value

    @model_validator(mode="after")
    def _is_possible(self) -> TokenizerSettings:
        _check_kind(self.kind)
        _check(self.symbols, self.separator)
        return self

    def of_side(self, side: Side) -> VocabularySettings:
        """Returns the settings of one side, with the values of both sides as defaults."""
        own = getattr(self, side)
        return VocabularySettings(
            **{
                key: value if (value := getattr(own, key)) is not None else getattr(self, key)
                for key in VocabularySettings.model_fields
            }
        )

    def asks_for_size(self, side: Side) -> bool:
        """Tests if the user set a size. A size from the user is never reduced."""
        return "size" in self.model_fields_set or "size" in getattr(self, side).model_fields_set
