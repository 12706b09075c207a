"""Lists of ids, weights and links of several pairs as arrays."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from keras_seq.data.layout import WEIGHT


def lengths_of(buffer: Sequence[Sequence]) -> np.ndarray:
    """Returns the length of each sequence, int64 `(N,)`."""
    return np.fromiter(map(len, buffer), dtype=np.int64, count=len(buffer))


def flat_ids(buffer: Sequence[Sequence[int]], count: int) -> np.ndarray:
    """Concatenates lists or arrays of ids; `count` is their total length."""
    if all(isinstance(ids, np.ndarray) for ids in buffer):
        flat = np.concatenate(buffer)
        if not np.issubdtype(flat.dtype, np.integer):
            raise TypeError(f"Token ids must be integers, received an array of {flat.dtype}")
        return flat
    return np.fromiter(chain.from_iterable(buffer), dtype=np.int64, count=count)


def checked_weights(weights: Sequence[float]) -> np.ndarray:
    """Returns weights as float32 `(N,)`; raises ValueError for a negative or infinite one."""
    with np.errstate(over="ignore"):
        array = np.array(weights, WEIGHT)
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        raise ValueError(
            f"A pair has the weight {weights[int(np.argmax(wrong))]!r}; expected a finite number "
            "of at least 0."
        )
    return array


def flat_links(
    buffer: Sequence[Sequence[tuple[int, int]]],
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
) -> np.ndarray:
    """Validates the word alignment links of all pairs and concatenates them: int64 `(L, 2)`."""
    flat = np.array([link for links in buffer for link in links], np.int64).reshape(-1, 2)
    counts = lengths_of(buffer)
    limits = np.stack([source_lengths, target_lengths], axis=1).repeat(counts, axis=0)
    wrong = ((flat < 0) | (flat >= limits)).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"A link is {tuple(flat[row].tolist())}, but its pair has {limits[row, 0]} source and "
            f"{limits[row, 1]} target tokens; expected positions of tokens, from 0."
        )
    return flat
