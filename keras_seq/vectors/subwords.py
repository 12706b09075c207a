"""Character n-grams of words, hashed to buckets."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Subwords:
    """Vectors of character n-grams, which give unseen words a vector.

    The n-grams have `min_ngram` to `max_ngram` characters and are hashed to `buckets` buckets.
    `places` are the buckets that have a vector, ascending, int32 `(N,)`; `vectors` are float32
    `(N, D)`.
    """

    min_ngram: int
    max_ngram: int
    buckets: int
    places: np.ndarray
    vectors: np.ndarray

    def vector(self, word: str) -> np.ndarray | None:
        """Returns the mean of the vectors of a word's n-grams; None if no n-gram has a vector."""
        hashed = hashed_parts(word, self.min_ngram, self.max_ngram, self.buckets)
        wanted = np.array(hashed, np.int64)
        rows = np.searchsorted(self.places, wanted)
        known = rows < len(self.places)
        known[known] = self.places[rows[known]] == wanted[known]
        return self.vectors[rows[known]].mean(axis=0) if known.any() else None


def character_ngrams(word: str, shortest: int = 3, longest: int = 6) -> list[str]:
    """Returns the n-grams of a word between `<` and `>`.

    The whole word is not included, because it has its own vector.

    >>> character_ngrams("where", 3, 3)
    ['<wh', 'whe', 'her', 'ere', 're>']
    >>> character_ngrams("a")
    []

    Reference:
        Bojanowski et al., "Enriching Word Vectors with Subword Information", TACL 2017, section
        3.2, https://arxiv.org/abs/1607.04606
    """
    bounded = f"<{word}>"
    return [
        bounded[place : place + length]
        for length in range(shortest, min(longest, len(bounded) - 1) + 1)
        for place in range(len(bounded) - length + 1)
    ]


def hashed_parts(word: str, shortest: int, longest: int, buckets: int) -> list[int]:
    """Returns the bucket of each n-gram of a word, by CRC-32 of its UTF-8 bytes."""
    parts = character_ngrams(word, shortest, longest)
    return [zlib.crc32(part.encode("utf-8", "replace")) % buckets for part in parts]


def rows_of_words(
    words: Sequence[str], shortest: int, longest: int, buckets: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lists the rows to average for the vector of each word: one for the word, one per n-gram.

    Row N belongs to word N; the rows of the n-grams follow. Returns the start of each word in the
    list of rows, int64 `(words + 1,)`; the rows, int32; and the bucket of each n-gram row,
    ascending, int32.
    """
    parts = [hashed_parts(word, shortest, longest, buckets) for word in words]
    lengths = np.array([len(hashed) for hashed in parts], np.int64)
    flat = np.fromiter((number for hashed in parts for number in hashed), np.int32, lengths.sum())
    places, rows = np.unique(flat, return_inverse=True)
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(lengths + 1, out=starts[1:])
    own = np.zeros(starts[-1], bool)
    own[starts[:-1]] = True
    all_rows = np.empty(starts[-1], np.int32)
    all_rows[own] = np.arange(len(words))
    all_rows[~own] = rows + len(words)
    return starts, all_rows, places
