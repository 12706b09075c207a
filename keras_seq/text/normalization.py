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

# SentencePiece writes a space as U+2581, so that character needs another representation. Unicode's
# noncharacters are never in a text that is exchanged.
SPACE_MARK = "\u2581"
_ESCAPED_MARK = "\ufdd1"
_ESCAPED_SPACE = "\ufdd0"
_ESCAPED_SEPARATOR = "\ufdd2"
_RESERVED = (SPACE_MARK, _ESCAPED_MARK, _ESCAPED_SPACE, _ESCAPED_SEPARATOR, "\n", "\r")
_MAX_SEPARATOR = 100
_ON_ONE_LINE = {ord("\n"): " ", ord("\r"): " "}
# `name` of a SentencePiece model's normalizer, where these rules are stored, begins with this.
_PREFIX = "keras_seq:"


class Normalized(NamedTuple):
    """A normalized line.

    Attributes:
        text: The line.
        starts: For each character of `text` the place in the original line where it begins.
        ends: For each character of `text` the place in the original line behind it. Of several
            characters that come from one, all but the last are empty and stand before it.
    """

    text: str
    starts: list[int]
    ends: list[int]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the original line that a stretch of `text` comes from."""
        if start < end:
            return self.starts[start], self.ends[end - 1]
        place = self.starts[start] if start < len(self.starts) else max(self.ends, default=0)
        return place, place


@dataclass(frozen=True)
class TextRules:
    """Rules for normalizing lines before they are cut, and the unit they are cut into.

    Attributes:
        kind: The kind of the vocabulary: "unigram", "bpe", "char", "word" or "byte"; None for a
            SentencePiece model that was not made here.
        form: Unicode normalization form, or "none". "nfc" composes accents, so that composed and
            decomposed text has the same ids. "nfd" cuts composed characters into their parts,
            such as Hangul syllables into letters, and composes them again when it decodes.
            "nfkc" also replaces compatibility characters, such as superscripts and full-width
            letters, and so loses them.
        lowercase: Whether letters are lowercased.
        separator: What separates the words of a "word" vocabulary.
    """

    kind: str | None = None
    form: Form = "none"
    lowercase: bool = False
    separator: str = " "

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise ValueError(f"form must be one of {get_args(Form)}, received {self.form!r}")
        if not 1 <= len(self.separator) <= _MAX_SEPARATOR or _is_escape(self.separator):
            raise ValueError(
                f"separator must be a string of 1 to {_MAX_SEPARATOR} characters, received "
                f"{self.separator[:60]!r}"
            )

    @classmethod
    def from_name(cls, name: str) -> TextRules:
        """Reads the rules from the name of a SentencePiece normalizer.

        Raises:
            InputError: The name begins as ours does and is something else.
        """
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
        """Returns the text that comes back after encoding and decoding."""
        if self.lowercase:
            # TensorFlow's function for lowercasing ends a text at a null character.
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
        """The normalization form of text that is decoded, None if text is left as it is."""
        return {"none": None, "nfc": "NFC", "nfd": "NFC", "nfkc": "NFKC"}[self.form]

    @property
    def decomposes(self) -> bool:
        """True if pieces are made of decomposed characters."""
        return self.form == "nfd"

    def apply(self, text: str) -> str:
        """Returns the input of a SentencePiece model with these rules; "" for a blank line."""
        if not text or text.isspace():
            return ""
        return self._escape(self.canonical(text.translate(_ON_ONE_LINE)))

    def undo(self, text: str) -> str:
        """Returns the text for the output of a SentencePiece model with these rules."""
        text = self._unescaped(text)
        return unicodedata.normalize("NFC", text) if self.decomposes else text

    def undo_parts(self, parts: list[str]) -> list[str]:
        """Undoes what `apply` did, part by part; joined, the parts are what `undo` gives.

        A character that is composed of several parts goes to the last of them.
        """
        parts = [self._unescaped(part) for part in parts]
        if not self.decomposes:
            return parts
        joined = "".join(parts)
        ends = list(itertools.accumulate(map(len, parts)))
        composed = [""] * len(parts)
        for start, end in self._clusters(joined):
            composed[bisect(ends, end - 1)] += unicodedata.normalize("NFC", joined[start:end])
        return composed

    def _unescaped(self, text: str) -> str:
        if self.separator != " ":
            for old, new in self.unescapes[:-1]:
                text = text.replace(old, new)
        return text if text.isascii() else text.replace(_ESCAPED_MARK, SPACE_MARK)

    def apply_with_places(self, text: str) -> Normalized:
        """Applies the rules and tracks where each character comes from."""
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
        """The bounds of the shortest stretches that can be normalized one by one."""
        bounds: list[tuple[int, int]] = []
        for found in self._units.finditer(text):
            if found[0] == self.separator:
                bounds.append(found.span())
                continue
            start = found.start()
            for place in range(found.start() + 1, found.end() + 1):
                if place == found.end() or self._may_part(text, start, place):
                    bounds.append((start, place))
                    start = place
        return bounds

    def _may_part(self, text: str, start: int, place: int) -> bool:
        character = text[place]
        if unicodedata.combining(character):
            return False
        before = text[start:place]
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
        """Replacements that `apply` makes last, in order, for a graph that does the same."""
        first = ((SPACE_MARK, _ESCAPED_MARK),)
        if self.separator == " ":
            return first
        return (
            *first,
            (self.separator, _ESCAPED_SEPARATOR),
            (" ", _ESCAPED_SPACE),
            (_ESCAPED_SEPARATOR, " "),
        )

    @property
    def unescapes(self) -> tuple[tuple[str, str], ...]:
        """Replacements that `undo` makes, in order."""
        last = ((_ESCAPED_MARK, SPACE_MARK),)
        if self.separator == " ":
            return last
        return (
            (" ", _ESCAPED_SEPARATOR),
            (_ESCAPED_SPACE, " "),
            (_ESCAPED_SEPARATOR, self.separator),
            *last,
        )


def _is_escape(separator: str) -> bool:
    return any(mark in separator for mark in _RESERVED)
