"""Checks of the numbers of a shard, which may come from anywhere."""

import sys

import numpy as np

from keras_seq.text import PAD_ID, InputError

# Numbers that are checked at a time, which fit into the cache of a processor.
_BLOCK = 1 << 18
_ADVICE = "the corpus is damaged, write it again"


def check_ids(path: str, ids: np.ndarray, size: int) -> None:
    """Raises InputError if an id is that of padding, or not below `size`.

    The holes of a sparse file are padding. So the first block of such a file is refused, whatever
    its size; the disk space of a file says less, because some file systems compress.
    """
    for start in range(0, len(ids), _BLOCK):
        block = ids[start : start + _BLOCK]
        low, high = int(block.min()), int(block.max())
        if low <= PAD_ID or high >= size:
            wrong = low if low <= PAD_ID else high
            raise InputError(
                f"{path}: the token id {wrong:,}, expected ids from {PAD_ID + 1} to {size - 1:,}, "
                f"the largest of the vocabulary; {_ADVICE}"
            )


def check_characters(path: str, points: np.ndarray) -> None:
    """Raises InputError if a number is not the code point of a character."""
    for start in range(0, len(points), _BLOCK):
        if (highest := int(points[start : start + _BLOCK].max())) > sys.maxunicode:
            raise InputError(
                f"{path}: the code point {highest:,}, expected at most {sys.maxunicode:,}; "
                f"{_ADVICE}"
            )


def check_weights(path: str, weights: np.ndarray) -> None:
    """Raises InputError if a weight is negative or not finite."""
    for start in range(0, len(weights), _BLOCK):
        block = weights[start : start + _BLOCK]
        if not (np.isfinite(block) & (block >= 0)).all():
            raise InputError(
                f"{path}: a weight that is not a finite number of at least 0; {_ADVICE}"
            )


def check_links(
    path: str, links: np.ndarray, offsets: np.ndarray, lengths: tuple[np.ndarray, np.ndarray]
) -> None:
    """Raises InputError if one of the links `(L, 2)` is to a token that its pair lacks.

    `offsets` `(N + 1,)` are the first links of the N pairs, and `lengths` two arrays `(N,)`.
    """
    ends = offsets.astype(np.int64)
    for start in range(0, len(links), _BLOCK):
        block = links[start : start + _BLOCK]
        pairs = np.searchsorted(ends, np.arange(start, start + len(block)), side="right") - 1
        for column, side in enumerate(lengths):
            if (block[:, column] >= side[pairs]).any():
                raise InputError(f"{path}: a link to a token that its pair lacks; {_ADVICE}")
