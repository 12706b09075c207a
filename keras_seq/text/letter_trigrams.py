"""Words as the three-letter parts they are made of, and those as numbers."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np


def letter_trigrams(word: str) -> list[str]:
    """The parts of three letters of a word, with `#` for its bounds.

    >>> letter_trigrams("good")
    ['#go', 'goo', 'ood', 'od#']
    >>> letter_trigrams("a")
    ['#a#']

    Raises:
        ValueError: If the word is empty.

    Reference:
        Huang et al., "Learning Deep Structured Semantic Models for Web Search using Clickthrough
        Data", CIKM 2013, section 3.2
    """
    if not word:
        raise ValueError("a word must have a letter at least, received ''")
    bounded = f"#{word}#"
    return [bounded[place : place + 3] for place in range(len(bounded) - 2)]


def trigram_ids(sentences: Sequence[Sequence[str]], vocabulary_size: int) -> np.ndarray:
    """The letter trigrams of words as ids, for `keras_seq.layers.HashedTrigramEmbedding`.

    Each trigram is hashed to an id from 1 to `vocabulary_size` - 1, by CRC-32 of its UTF-8: the
    same in every process and on every machine. English has some 30,000 trigrams; where two
    of them share an id, two words are confused only if they share all.

    Args:
        sentences: Words of each sentence.
        vocabulary_size: Integer, 2 at least.

    Returns:
        Int32 array `(sentences, words, trigrams)`, as many as the longest has, 0 where padded.

    Raises:
        ValueError: If `vocabulary_size` is less than 2, or a word is empty.

    Example:

    >>> ids = trigram_ids([["good", "a"], ["goods"]], vocabulary_size=30_000)
    >>> ids.shape
    (2, 2, 5)
    >>> bool((ids[0, 0, :3] == ids[1, 0, :3]).all()), ids[0, 1, 1:].tolist()
    (True, [0, 0, 0, 0])
    """
    if vocabulary_size < 2:
        raise ValueError(f"vocabulary_size must be 2 at least, received {vocabulary_size!r}")
    hashed = [[_hashed(word, vocabulary_size) for word in words] for words in sentences]
    most_words = max(map(len, hashed), default=0)
    most_parts = max((len(parts) for words in hashed for parts in words), default=0)
    ids = np.zeros((len(hashed), most_words, most_parts), "int32")
    for row, words in enumerate(hashed):
        for place, parts in enumerate(words):
            ids[row, place, : len(parts)] = parts
    return ids


def _hashed(word: str, vocabulary_size: int) -> list[int]:
    parts = letter_trigrams(word)
    return [1 + zlib.crc32(part.encode()) % (vocabulary_size - 1) for part in parts]
