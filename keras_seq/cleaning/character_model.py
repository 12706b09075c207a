"""Character trigram models, which tell the language of a text from the corpus alone."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

# Added to each count, so that an unseen trigram has a probability.
_SMOOTHING = 0.1
_START, _END = "\x02\x02", "\x03"
# Trigrams are counted in a table by a hash, in which few of the some 50,000 of a language collide.
_TABLE = 2**22
# Characters of a text that count, and letters of several texts that are counted at once.
_MAX_CHARACTERS = 100_000
_GROUP_LETTERS = 2**20
_FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D], np.uint64)


class CharacterModel:
    """Trigram model of the letters of one side of a corpus.

    Digits, punctuation and the case of letters are ignored. Each count is increased by 0.1.

    Attributes:
        letters: The letters of the texts that were added.

    Reference:
        Cavnar and Trenkle, "N-Gram-Based Text Categorization", SDAIR 1994, which compares ranks
        instead of probabilities.

    >>> model = CharacterModel()
    >>> model.add(["the house", "the cat", "the mouse"])
    >>> english, french = model.log_probabilities(["the horse", "le chat"], 27)
    >>> bool(english > french)
    True
    """

    def __init__(self) -> None:
        self._trigrams = np.zeros(_TABLE, np.int64)
        self._contexts = np.zeros(_TABLE, np.int64)
        self.letters: set[str] = {_END}

    def add(self, texts: Sequence[str]) -> None:
        """Adds the trigrams of texts."""
        for letters in _groups(texts):
            self.letters.update(*letters)
            found = _find(letters)
            np.add.at(self._trigrams, found.trigrams, 1)
            np.add.at(self._contexts, found.contexts, 1)

    def log_probabilities(
        self, texts: Sequence[str], num_letters: int, *, leave_out: bool = False
    ) -> np.ndarray:
        """Returns the mean natural log-probability of the characters of each text.

        `num_letters` is the number of different letters that a text may have. Models are compared
        with the same number. With `leave_out`, the counts are those without the text itself, which
        was added once.
        """
        if not texts:
            return np.zeros(0)
        size = _SMOOTHING * num_letters
        groups = [self._of_group(letters, size, leave_out) for letters in _groups(texts)]
        return np.concatenate(groups)

    def _of_group(self, letters: Sequence[str], size: float, leave_out: bool) -> np.ndarray:
        found = _find(letters)
        seen, around = self._trigrams[found.trigrams], self._contexts[found.contexts]
        if leave_out:
            seen = np.maximum(seen - _repetitions(found.texts, found.trigrams), 0)
            around = np.maximum(around - _repetitions(found.texts, found.contexts), 0)
        values = np.log((seen + _SMOOTHING) / (around + size))
        # Each text has at least one trigram.
        return np.bincount(found.texts, values) / np.bincount(found.texts)


class _Letters(dict[int, int]):
    """Maps letters and their marks to themselves, and other characters to a space."""

    def __missing__(self, point: int) -> int:
        is_letter = unicodedata.category(chr(point))[0] in "LM"
        self[point] = point if is_letter else ord(" ")
        return self[point]


_LETTERS = _Letters()


def num_trigrams(text: str) -> int:
    """Returns the number of trigrams of a text, which is one more than that of its letters."""
    return len(letters_of(text)) + 1


def letters_of(text: str) -> str:
    """Returns the letters of a text in lower case, with one space between words.

    Only the beginning of a text of more than 100,000 characters counts.
    """
    return " ".join(text[:_MAX_CHARACTERS].lower().translate(_LETTERS).split())


def _groups(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yields the letters of texts, of some at a time, because each takes some 90 bytes."""
    group: list[str] = []
    size = 0
    for text in texts:
        letters = letters_of(text)
        if group and size + len(letters) > _GROUP_LETTERS:
            yield group
            group, size = [], 0
        group.append(letters)
        size += len(letters)
    if group:
        yield group


class _Found(NamedTuple):
    """The trigrams of several texts: the number of the text, and the positions in the tables."""

    texts: np.ndarray
    trigrams: np.ndarray
    contexts: np.ndarray


def _find(letters: Sequence[str]) -> _Found:
    joined = "".join(f"{_START}{text}{_END}" for text in letters)
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    texts = np.repeat(np.arange(len(letters)), [len(text) + 3 for text in letters])
    inside = texts[:-2] == texts[2:]
    contexts = points[:-2] * _FACTORS[0] + points[1:-1] * _FACTORS[1]
    trigrams = contexts + points[2:] * _FACTORS[2]
    return _Found(texts[2:][inside], _slots(trigrams[inside]), _slots(contexts[inside]))


def _slots(hashes: np.ndarray) -> np.ndarray:
    # The higher bits depend on all characters.
    return ((hashes ^ (hashes >> np.uint64(21))) % np.uint64(_TABLE)).astype(np.int64)


def _repetitions(texts: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Returns how often each slot occurs in its text."""
    keys = texts * _TABLE + slots
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[inverse]
