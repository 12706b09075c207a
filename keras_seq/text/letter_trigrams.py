"""Letter trigrams of words, and their hashed ids."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np


def letter_trigrams(word: str) -> list[str]:
    """Returns the letter trigrams of a nonempty word, with `#` as word boundary.

    >>> letter_trigrams("good"), letter_trigrams("a")
    (['#go', 'goo', 'ood', 'od#'], ['#a#'])

    Reference:
        Huang et al., "Learning Deep Structured Semantic Models for Web Search using Clickthrough
        Data", CIKM 2013, section 3.2
    """
    if not word:
        raise ValueError("a word must have at least one letter, received ''")
    bounded = f"#{word}#"
    return [bounded[start : start + 3] for start in range(len(bounded) - 2)]


def trigram_ids(sentences: Sequence[Sequence[str]], vocabulary_size: int) -> np.ndarray:
    """Computes ids of the letter trigrams of words, for `HashedTrigramEmbedding`.

    The id of a trigram is a number from 1 to `vocabulary_size` - 1, computed by CRC-32 of its UTF-8
    bytes, so it is the same on every machine. English has about 30,000 trigrams. If two trigrams
    collide, words are confused only if all their trigrams collide.

    `sentences` has the words of each sentence. Returns int32 `(sentences, words, trigrams)`,
    zero-padded.

    Example:

    >>> ids = trigram_ids([["good", "a"], ["goods"]], vocabulary_size=30_000)
    >>> ids.shape
    (2, 2, 5)
    >>> bool((ids[0, 0, :3] == ids[1, 0, :3]).all()), ids[0, 1, 1:].tolist()
    (True, [0, 0, 0, 0])
    """
    if vocabulary_size < 2:
        raise ValueError(f"vocabulary_size must be at least 2, received {vocabulary_size!r}")
    trigrams = [[letter_trigrams(word) for word in words] for words in sentences]
    max_words = max(map(len, trigrams), default=0)
    max_parts = max((len(parts) for words in trigrams for parts in words), default=0)
    ids = np.zeros((len(trigrams), max_words, max_parts), "int32")
    for row, words in enumerate(trigrams):
        for column, parts in enumerate(words):
            hashes = [1 + zlib.crc32(part.encode()) % (vocabulary_size - 1) for part in parts]
            ids[row, column, : len(parts)] = hashes
    return ids
