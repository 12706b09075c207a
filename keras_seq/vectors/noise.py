"""Sampling of noise words in constant time, and subsampling of frequent words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Exponent of the frequencies, which favors rare words.
POWER = 0.75


class Noise(NamedTuple):
    """Alias table, float32 and int32 `(words,)`.

    An index is sampled, and kept with its probability or replaced by its alias.
    """

    chances: np.ndarray
    aliases: np.ndarray


def noise_table(counts: np.ndarray) -> Noise:
    """Builds the table to sample words in proportion to count^(3/4).

    References:
        Mikolov et al., "Distributed Representations of Words and Phrases and their
        Compositionality", 2013, section 2.2, https://arxiv.org/abs/1310.4546. Walker, "An Efficient
        Method for Generating Discrete Random Variables with General Distributions", 1977.
    """
    shares = np.asarray(counts, np.float64) ** POWER
    left = (shares * (len(shares) / shares.sum())).tolist()
    chances = np.ones(len(left), np.float32)
    aliases = np.arange(len(left), dtype=np.int32)
    small = [place for place, share in enumerate(left) if share < 1]
    large = [place for place, share in enumerate(left) if share >= 1]
    while small and large:
        place, other = small.pop(), large[-1]
        chances[place], aliases[place] = left[place], other
        left[other] -= 1 - left[place]
        if left[other] < 1:
            small.append(large.pop())
    return Noise(chances, aliases)


def keep_chances(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Computes the probability of each word to stay in the text, float32 `(words,)`.

    A word of relative frequency f is dropped with probability 1 - sqrt(t / f), where t is
    `threshold`; 0 keeps all words.

    Reference:
        Mikolov et al., "Distributed Representations of Words and Phrases and their
        Compositionality", 2013, section 2.3, https://arxiv.org/abs/1310.4546
    """
    if threshold == 0:
        return np.ones(len(counts), np.float32)
    shares = np.asarray(counts, np.float64) / np.sum(counts)
    return np.minimum(1.0, np.sqrt(threshold / shares)).astype(np.float32)
