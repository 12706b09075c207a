"""Tables computed from word counts: noise words, subsampling and the Huffman tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Exponent of the frequencies, which favors rare words.
_POWER = 0.75


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
    shares = np.asarray(counts, np.float64) ** _POWER
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
    """Computes the probability that each word is kept in the text, float32 `(words,)`.

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


class HuffmanPaths(NamedTuple):
    """The path from the root of the Huffman tree to each word.

    `starts` has the start of each path in `nodes`, and the end of the last, int64 `(words + 1,)`.
    `nodes` are inner nodes, int32 below `words - 1`. `labels` are 1 where a path goes left, 0 where
    it goes right, float32.
    """

    starts: np.ndarray
    nodes: np.ndarray
    labels: np.ndarray


def huffman_paths(counts: np.ndarray) -> HuffmanPaths:
    """Computes the Huffman code of words, a prefix-free code, from counts in descending order.

    The paths have the minimum mean length, weighted by the counts.

    Example:

    >>> paths = huffman_paths(np.array([5, 2, 1, 1]))
    >>> np.diff(paths.starts).tolist()
    [1, 2, 3, 3]

    Reference:
        Mikolov et al., "Efficient Estimation of Word Representations in Vector Space", 2013,
        section 3, https://arxiv.org/abs/1301.3781
    """
    size = len(counts)
    # Words come first, then inner nodes. Both are sorted by weight, so two queues suffice.
    weights = [int(count) for count in counts]
    parents = [0] * (2 * size - 1)
    labels = [0.0] * (2 * size - 1)
    word, inner = size - 1, size
    for node in range(size, 2 * size - 1):
        total = 0
        for label in (0.0, 1.0):
            if word >= 0 and (inner >= node or weights[word] <= weights[inner]):
                child, word = word, word - 1
            else:
                child, inner = inner, inner + 1
            parents[child], labels[child] = node, label
            total += weights[child]
        weights.append(total)
    root = 2 * size - 2
    starts = np.zeros(size + 1, np.int64)
    nodes: list[int] = []
    turns: list[float] = []
    for place in range(size):
        path = []
        child = place
        while child != root:
            path.append((parents[child] - size, labels[child]))
            child = parents[child]
        for parent, label in reversed(path):
            nodes.append(parent)
            turns.append(label)
        starts[place + 1] = len(nodes)
    return HuffmanPaths(starts, np.array(nodes, np.int32), np.array(turns, np.float32))
