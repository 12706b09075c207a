"""GloVe: vectors whose dot products approximate the log of co-occurrence counts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from keras_seq.vectors.compiling import compiled

# Maximum count and exponent of the weighting function; section 4.2 of the paper.
LARGEST_COUNT = np.float32(100)
POWER = np.float32(0.75)


class GloveTables(NamedTuple):
    """Trained tables and their sums of squared gradients. The sums start at 1.

    `vectors` `(2, V, D)` and `biases` `(2, V)` belong to middle words (0) and context words (1).
    """

    vectors: np.ndarray
    biases: np.ndarray
    vector_squares: np.ndarray
    bias_squares: np.ndarray


def glove_tables(words: int, units: int, seed: int) -> GloveTables:
    """Returns tables with small random numbers."""
    generator = np.random.default_rng(seed)
    shape = (2, words, units)
    vectors = (generator.random(shape, np.float32) - np.float32(0.5)) / np.float32(units + 1)
    biases = (generator.random((2, words), np.float32) - np.float32(0.5)) / np.float32(units + 1)
    return GloveTables(vectors, biases, np.ones(shape, np.float32), np.ones((2, words), np.float32))


@compiled
def weight(count: Any) -> Any:
    """Weighting function f(x) = min(1, (x / 100)^0.75)."""
    if count >= LARGEST_COUNT:
        return np.float32(1)
    return np.float32((count / LARGEST_COUNT) ** POWER)


@compiled
def glove_steps(
    order: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    counts: np.ndarray,
    tables: Any,
    rate: Any,
) -> Any:
    """Takes an AdaGrad step for each entry of the sparse matrix X in `order`, and sums the losses.

    The loss of an entry is f(X_ij) (w_i . v_j + b_i + c_j - log X_ij)^2 / 2, before its step.
    `tables` are `GloveTables`, updated in place.

    References:
        Pennington, Socher and Manning, "GloVe: Global Vectors for Word Representation", EMNLP
        2014, https://aclanthology.org/D14-1162. Duchi, Hazan and Singer, "Adaptive Subgradient
        Methods for Online Learning and Stochastic Optimization", 2011.
    """
    total = 0.0
    for entry in order:
        row, column = rows[entry], columns[entry]
        word, context = tables.vectors[0, row], tables.vectors[1, column]
        word_squares = tables.vector_squares[0, row]
        context_squares = tables.vector_squares[1, column]
        score = np.float32(0)
        for unit in range(len(word)):
            score += word[unit] * context[unit]
        score += tables.biases[0, row] + tables.biases[1, column]
        difference = score - np.float32(math.log(counts[entry]))
        slope = weight(counts[entry]) * difference
        total += 0.5 * slope * difference
        for unit in range(len(word)):
            by_word, by_context = slope * context[unit], slope * word[unit]
            word_squares[unit] += by_word * by_word
            context_squares[unit] += by_context * by_context
            word[unit] -= rate * by_word / np.float32(math.sqrt(word_squares[unit]))
            context[unit] -= rate * by_context / np.float32(math.sqrt(context_squares[unit]))
        for side, place in ((0, row), (1, column)):
            tables.bias_squares[side, place] += slope * slope
            step = rate * slope / np.float32(math.sqrt(tables.bias_squares[side, place]))
            tables.biases[side, place] -= step
    return total
