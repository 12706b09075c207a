"""Base classes and fields of the sections of the settings."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A frozen section, strict about types, that refuses unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ModelSection(Section):
    """The settings of a family of models.

    Attributes:
        family: The name of the family. A subclass sets the default.
        model_class: The class of its models, or "module:name". The first argument is the size of a
            vocabulary, or the encoder.
        encoder_class: The class of a separate encoder, "module:name", or None.
    """

    model_class: ClassVar[str | type]
    encoder_class: ClassVar[str | type | None] = None

    # Declared in the base class, so that every list of settings begins with `family`.
    family: str

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `model_class`."""
        return self.model_dump(exclude={"family", "members"})

    def encoder_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `encoder_class`."""
        return {}

    @property
    def reads_characters(self) -> bool:
        """True if the model reads the characters of words, besides its tokens."""
        return bool(getattr(self, "character_filters", 0) or getattr(self, "form_units", 0))

    @property
    def copies(self) -> bool:
        """True if the model copies source tokens."""
        # Sections without this field have a method of pydantic under its name.
        return "copy" in type(self).model_fields and bool(self.copy)

    @property
    def embedding_width(self) -> int:
        """Width of the token embeddings."""
        return int(getattr(self, "embedding_units", 0) or getattr(self, "units", 0))

    @property
    def output_width(self) -> int:
        """Width of the vectors that scores are computed from."""
        return int(getattr(self, "units", 0) or self.embedding_width)

    @property
    def activations(self) -> int:
        """Approximate numbers that training stores for each token, without the output layer."""
        return 0

    @property
    def attention_heads(self) -> int:
        """Heads of the attention among all tokens of the source; 0 if there is none."""
        return 0

    def min_parameters(self) -> int:
        """A lower bound of the number of weights, without those of the vocabulary."""
        return 0

    @property
    def min_token_parameters(self) -> int:
        """A lower bound of the number of weights for each entry of the vocabulary."""
        return 0


def as_list(value: str | list[str] | None) -> list[str]:
    """Returns a setting that is one string, a list of strings or None as a list."""
    return [value] if isinstance(value, str) else list(value or ())


def a_number(default: Any, low: float, high: float, description: str) -> Any:
    return Field(default=default, ge=low, le=high, description=description)


def a_share(default: float, description: str) -> Any:
    return Field(default=default, ge=0, lt=1, description=description)


def a_choice(default: Any, description: str) -> Any:
    return Field(default=default, description=description)


def a_text(description: str) -> Any:
    return Field(default=None, min_length=1, max_length=4096, description=description)


def a_family(name: str) -> Any:
    return Field(default=name, description="Family of the model.")
