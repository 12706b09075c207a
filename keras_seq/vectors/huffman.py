"""Huffman tree of a vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class HuffmanPaths(NamedTuple):
    """The path from the root to each word.

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
    # Words, then inner nodes. Both are in the order of their weights, so two queues suffice.
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
