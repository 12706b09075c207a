"""Statistics of the lines of one side of a corpus, for choosing its vocabulary units."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .learning import has_extra_spaces

# Enough text to choose the units.
_MAX_LINES = 20_000
_MAX_CHARACTERS = 2_000
# Maximum number of distinct words or characters to count; more are no closed set or alphabet.
_MAX_DISTINCT = 5_000


@dataclass(frozen=True)
class LineStatistics:
    """Counts over the first lines with text, at most 20,000.

    Words are separated by white space. The numbers of distinct characters and words are at most
    5,000. `distinct_parts` counts distinct characters after canonical decomposition. `extra_spaces`
    counts lines that begin or end with a space or have two in a row.
    """

    lines: int = 0
    characters: int = 0
    words: int = 0
    distinct_characters: int = 0
    distinct_words: int = 0
    distinct_parts: int = 0
    extra_spaces: int = 0

    @classmethod
    def from_dict(cls, stored: Any) -> LineStatistics | None:
        """Builds statistics from the output of `to_dict`; returns None if it is invalid."""
        if not isinstance(stored, Mapping) or set(stored) != set(asdict(cls())):
            return None
        if not all(type(value) is int and value >= 0 for value in stored.values()):
            return None
        return cls(**stored)

    def to_dict(self) -> dict[str, int]:
        return asdict(self)

    @property
    def words_per_line(self) -> float:
        """Mean number of words per line."""
        return self.words / max(self.lines, 1)

    @property
    def characters_per_line(self) -> float:
        """Mean number of characters per line."""
        return self.characters / max(self.lines, 1)


class LineCounter:
    """Collects `LineStatistics` from lines."""

    def __init__(self) -> None:
        self._lines = self._characters = self._words = self._extra_spaces = 0
        self._distinct_characters: set[str] = set()
        self._distinct_words: set[str] = set()

    def add(self, line: str) -> None:
        """Adds a line that has text."""
        if self._lines >= _MAX_LINES:
            return
        self._lines += 1
        self._extra_spaces += has_extra_spaces(line)
        line = line[:_MAX_CHARACTERS]
        words = line.split()
        self._characters += len(line)
        self._words += len(words)
        if len(self._distinct_characters) < _MAX_DISTINCT:
            self._distinct_characters.update(line)
        if len(self._distinct_words) < _MAX_DISTINCT:
            self._distinct_words.update(words)

    @property
    def statistics(self) -> LineStatistics:
        """The counts so far."""
        return LineStatistics(
            self._lines,
            self._characters,
            self._words,
            min(len(self._distinct_characters), _MAX_DISTINCT),
            min(len(self._distinct_words), _MAX_DISTINCT),
            len(set(unicodedata.normalize("NFD", "".join(self._distinct_characters)))),
            self._extra_spaces,
        )
