"""Normalization of text before it is cut into tokens, and its reversal after decoding."""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from bisect import bisect
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from .errors import InputError

Form = Literal["none", "nfc", "nfd", "nfkc"]

# SentencePiece represents a space by U+2581, so a literal U+2581 is escaped. The escapes are
# Unicode noncharacters, which do not occur in text.
SPACE_MARK = "\u2581"
_ESCAPED_MARK = "\ufdd1"
_ESCAPED_SPACE = "\ufdd0"
_ESCAPED_SEPARATOR = "\ufdd2"
_RESERVED = (SPACE_MARK, _ESCAPED_MARK, _ESCAPED_SPACE, _ESCAPED_SEPARATOR, "\n", "\r")
_MAX_SEPARATOR = 100
_ON_ONE_LINE = {ord("\n"): " ", ord("\r"): " "}
# The rules are stored in the name of the normalizer of a SentencePiece model, after this prefix.
_PREFIX = "keras_seq:"


class Normalized(NamedTuple):
    """A normalized line, and the start and end of each of its characters in the original line.

    If one original character becomes several, all but the last have zero width.
    """

    text: str
    starts: list[int]
    ends: list[int]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Returns the span of the original line for a span of `text`."""
        if start < end:
            return self.starts[start], self.ends[end - 1]
        position = self.starts[start] if start < len(self.starts) else max(self.ends, default=0)
        return position, position


@dataclass(frozen=True)
class TextRules:
    """The kind of a vocabulary, and the normalization of its text.

    Attributes:
        kind: The kind of the vocabulary; None for an imported SentencePiece model.
        form: Unicode normalization form, or "none". "nfc" composes accents, so that composed and
            decomposed text has the same ids. "nfd" encodes the parts of composed characters, such
            as the letters of Hangul syllables, and composes them when decoding. "nfkc" also
            replaces compatibility characters, such as superscripts, which is lossy.
        lowercase: Boolean, whether to lowercase the text.
        separator: The separator of the words of a "word" vocabulary.
    """

    kind: str | None = None
    form: Form = "none"
    lowercase: bool = False
    separator: str = " "

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise ValueError(f"form must be one of {get_args(Form)}, received {self.form!r}")
        reserved = any(mark in self.separator for mark in _RESERVED)
        if reserved or not 1 <= len(self.separator) <= _MAX_SEPARATOR:
            raise ValueError(
                f"separator must be a string of 1 to {_MAX_SEPARATOR} characters, received "
                f"{self.separator[:60]!r}"
            )

    @classmethod
    def from_name(cls, name: str) -> TextRules:
        """Parses the rules from the name of a SentencePiece normalizer; raises InputError."""
        if not name.startswith(_PREFIX):
            return cls()
        try:
            stored = json.loads(name.removeprefix(_PREFIX))
            rules = cls(**stored)
            if any(type(value) is not type(getattr(cls(""), key)) for key, value in stored.items()):
                raise TypeError
        except (TypeError, ValueError, RecursionError, AttributeError):
            raise InputError("the tokenizer model has unknown normalization rules") from None
        return rules

    @property
    def name(self) -> str:
        """The rules as the name of a SentencePiece normalizer."""
        return _PREFIX + json.dumps(asdict(self), ensure_ascii=True)

    def canonical(self, text: str) -> str:
        """Returns the result of encoding and decoding a text."""
        if self.lowercase:
            # The lowercasing function of TensorFlow stops at a null character.
            text = text.replace("\0", "\ufffd")
        if text.isascii():
            return text.lower() if self.lowercase else text
        form = self.composing_form
        if form is not None:
            text = unicodedata.normalize(form, text)
        if self.lowercase:
            text = text.lower()
            if form is not None:
                # Lowercasing may decompose: U+0130 becomes i and a combining dot.
                text = unicodedata.normalize(form, text)
        return text

    @property
    def composing_form(self) -> Literal["NFC", "NFKC"] | None:
        """The Unicode normalization form of decoded text; None for "none"."""
        return {"none": None, "nfc": "NFC", "nfd": "NFC", "nfkc": "NFKC"}[self.form]

    @property
    def decomposes(self) -> bool:
        """True if pieces consist of decomposed characters."""
        return self.form == "nfd"

    def apply(self, text: str) -> str:
        """Converts a line to the input of the SentencePiece model; "" for a blank line."""
        if not text or text.isspace():
            return ""
        return self._escape(self.canonical(text.translate(_ON_ONE_LINE)))

    def undo(self, text: str) -> str:
        """Converts the output of the SentencePiece model to text."""
        text = self._unescape(text)
        return unicodedata.normalize("NFC", text) if self.decomposes else text

    def undo_parts(self, parts: list[str]) -> list[str]:
        """Applies `undo` to parts of a text. The joined results equal `undo` of the joined text.

        A character that is composed from several parts belongs to the last of these parts.
        """
        parts = [self._unescape(part) for part in parts]
        if not self.decomposes:
            return parts
        joined = "".join(parts)
        ends = list(itertools.accumulate(map(len, parts)))
        composed = [""] * len(parts)
        for start, end in self._clusters(joined):
            composed[bisect(ends, end - 1)] += unicodedata.normalize("NFC", joined[start:end])
        return composed

    def _unescape(self, text: str) -> str:
        if self.separator != " ":
            for old, new in self.unescapes[:-1]:
                text = text.replace(old, new)
        return text if text.isascii() else text.replace(_ESCAPED_MARK, SPACE_MARK)

    def apply_with_offsets(self, text: str) -> Normalized:
        """Applies the rules and tracks the origin of each character."""
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for start, end in self._clusters(text):
            piece = self._escape(self.canonical(text[start:end].translate(_ON_ONE_LINE)))
            pieces.append(piece)
            if len(piece) == end - start:
                starts += range(start, end)
                ends += range(start + 1, end + 1)
            elif piece:
                starts += [start] * len(piece)
                ends += [start] * (len(piece) - 1) + [end]
        return Normalized("".join(pieces), starts, ends)

    def _clusters(self, text: str) -> list[tuple[int, int]]:
        """The spans of the shortest parts that can be normalized independently."""
        spans: list[tuple[int, int]] = []
        for match in self._units.finditer(text):
            if match[0] == self.separator:
                spans.append(match.span())
                continue
            start = match.start()
            for position in range(match.start() + 1, match.end() + 1):
                if position == match.end() or self._is_boundary(text, start, position):
                    spans.append((start, position))
                    start = position
        return spans

    def _is_boundary(self, text: str, start: int, position: int) -> bool:
        character = text[position]
        if unicodedata.combining(character):
            return False
        before = text[start:position]
        return self.canonical(before + character) == self.canonical(before) + self.canonical(
            character
        )

    @cached_property
    def _units(self) -> re.Pattern[str]:
        separator = re.escape(self.separator)
        return re.compile(f"{separator}|(?:(?!{separator}).)+", re.DOTALL)

    def _escape(self, text: str) -> str:
        if not text.isascii():
            if self.decomposes:
                text = unicodedata.normalize("NFD", text)
            text = text.replace(SPACE_MARK, _ESCAPED_MARK)
        if self.separator != " ":
            for old, new in self.escapes[1:]:
                text = text.replace(old, new)
        return text

    @property
    def escapes(self) -> tuple[tuple[str, str], ...]:
        """The last string replacements of `apply`, in order, for use in a TensorFlow graph."""
        mark = (SPACE_MARK, _ESCAPED_MARK)
        if self.separator == " ":
            return (mark,)
        between = (self.separator, _ESCAPED_SEPARATOR)
        return mark, between, (" ", _ESCAPED_SPACE), (_ESCAPED_SEPARATOR, " ")

    @property
    def unescapes(self) -> tuple[tuple[str, str], ...]:
        """The replacements of `undo`, in order."""
        return tuple((new, old) for old, new in reversed(self.escapes))
