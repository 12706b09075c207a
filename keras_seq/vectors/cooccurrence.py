"""Word co-occurrence counts, the matrix that GloVe factorizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_seq.vectors.compiling import compiled
from keras_seq.vectors.corpus import LONGEST

# Fibonacci hashing: a prime near 2^64 divided by the golden ratio spreads close keys.
_SPREAD = np.uint64(11400714819323198485)
_EMPTY = -1


class Cooccurrences:
    """Sums of 1 / distance over all pairs of words within a window, in a hash table.

    `words` is the size of the vocabulary, and `window` the maximum distance of a pair. Memory is
    about 32 bytes for each distinct pair.

    Example:

    >>> counts = Cooccurrences(3, window=2)
    >>> counts.add(np.array([0, 1, 2, -1], np.int32))
    >>> rows, columns, sums = counts.entries()
    >>> sorted(zip(rows.tolist(), columns.tolist(), sums.tolist()))
    [(0, 1, 1.0), (0, 2, 0.5), (1, 0, 1.0), (1, 2, 1.0), (2, 0, 0.5), (2, 1, 1.0)]
    """

    def __init__(self, words: int, window: int) -> None:
        self._words = words
        self._window = window
        self._used = 0
        self._keys, self._sums = _room(1 << 12)

    def add(self, block: np.ndarray) -> None:
        """Counts a block of the text, int32 with -1 after each sentence."""
        for part in _parts(block):
            # Grows the table before the new pairs of the part could fill more than half of it.
            most = self._used + len(part) * self._window
            if 2 * most > len(self._keys):
                keys, sums = _room(1 << (2 * most).bit_length())
                _move(self._keys, self._sums, keys, sums)
                self._keys, self._sums = keys, sums
            self._used += _count(part, self._window, self._words, self._keys, self._sums)

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the symmetric matrix: rows and columns, int32, and sums, float32.

        Entries are sorted by row, then by column.
        """
        used = self._keys != _EMPTY
        keys, sums = self._keys[used], self._sums[used]
        rows, columns = (keys // self._words, keys % self._words)
        both = rows != columns
        # A pair of equal words counts in both directions.
        sums = np.where(both, sums, 2 * sums)
        all_rows = np.concatenate([rows, columns[both]])
        all_columns = np.concatenate([columns, rows[both]])
        order = np.argsort(all_rows * self._words + all_columns)
        all_sums = np.concatenate([sums, sums[both]])[order].astype(np.float32)
        return all_rows[order].astype(np.int32), all_columns[order].astype(np.int32), all_sums


def _parts(block: np.ndarray) -> Iterator[np.ndarray]:
    """Splits a block into small groups of sentences, so that the table needs little free space."""
    ends = (np.flatnonzero(block == -1) + 1).tolist()
    start = 0
    for end, following in zip(ends, [*ends[1:], None], strict=True):
        if following is None or following - start > 2 * LONGEST:
            yield block[start:end]
            start = end


def _room(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(size, _EMPTY, np.int64), np.zeros(size, np.float64)


@compiled
def _place(keys: np.ndarray, key: Any) -> Any:
    """Returns the slot of a key, or a free slot for it."""
    last = np.uint64(len(keys) - 1)
    place = ((np.uint64(key) * _SPREAD) >> np.uint64(20)) & last
    while keys[place] != key and keys[place] != _EMPTY:
        place = (place + np.uint64(1)) & last
    return place


@compiled
def _move(keys: np.ndarray, sums: np.ndarray, new_keys: np.ndarray, new_sums: np.ndarray) -> None:
    for old in range(len(keys)):
        if keys[old] != _EMPTY:
            place = _place(new_keys, keys[old])
            new_keys[place] = keys[old]
            new_sums[place] = sums[old]


@compiled
def _count(block: np.ndarray, window: Any, words: Any, keys: np.ndarray, sums: np.ndarray) -> Any:
    """Adds a block; returns the number of new pairs."""
    new = 0
    for end in range(len(block)):
        if block[end] < 0:
            continue
        for distance in range(1, min(window, end) + 1):
            other = np.int64(block[end - distance])
            if other < 0:
                break
            word = np.int64(block[end])
            key = min(word, other) * words + max(word, other)
            place = _place(keys, key)
            if keys[place] == _EMPTY:
                keys[place] = key
                new += 1
            sums[place] += 1.0 / distance
    return new
