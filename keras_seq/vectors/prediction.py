"""Skip-gram and CBOW: training steps of word2vec and fastText."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from keras_seq.vectors.compiling import compiled
from keras_seq.vectors.corpus import LONGEST

# All compiled functions of the training step are in this file, because Numba recompiles a cached
# function only if the file of the function changes, not if another file changes.

# Shape letters: V words, R rows of the input table, D units.

NEGATIVE, HIERARCHICAL, SOFTMAX = range(3)
ONE = np.float32(1)
ZERO = np.float32(0)
_HALF = np.uint64(32)
_PART = np.float32(2.0**-32)
_A, _B, _C = np.uint64(12), np.uint64(25), np.uint64(27)
_FACTOR = np.uint64(2685821657736338717)


@compiled
def draw(state: np.ndarray) -> Any:
    """Returns 32 random bits as uint64 (xorshift64*); `state` is one nonzero uint64."""
    bits = state[0]
    bits ^= bits >> _A
    bits ^= bits << _B
    bits ^= bits >> _C
    state[0] = bits
    return (bits * _FACTOR) >> _HALF


@compiled
def draw_share(state: np.ndarray) -> Any:
    """Returns a random number in [0, 1]."""
    return np.float32(draw(state)) * _PART


@compiled
def draw_noise(state: np.ndarray, chances: np.ndarray, aliases: np.ndarray) -> Any:
    """Samples a noise word from an alias table."""
    place = np.int64((draw(state) * np.uint64(len(chances))) >> _HALF)
    if draw_share(state) < chances[place]:
        return place
    return np.int64(aliases[place])


# Each `*_step` function updates rows of `outputs` in place, and adds the update of the `hidden`
# vector to `gradient`. An update is the negative gradient of the loss times the learning rate.


@compiled
def logistic_step(
    hidden: np.ndarray, gradient: np.ndarray, outputs: np.ndarray, row: Any, label: Any, rate: Any
) -> None:
    """Logistic loss step: -log s(o_row . h) for label 1, and -log s(-o_row . h) for label 0.

    The derivative by o_row . h is s(o_row . h) - label, where s is the logistic function.
    """
    score: Any = ZERO
    for unit in range(len(hidden)):
        score += hidden[unit] * outputs[row, unit]
    step = (label - ONE / (ONE + np.float32(math.exp(-score)))) * rate
    for unit in range(len(hidden)):
        gradient[unit] += step * outputs[row, unit]
        outputs[row, unit] += step * hidden[unit]


@compiled
def negative_step(
    hidden: np.ndarray,
    gradient: np.ndarray,
    outputs: np.ndarray,
    target: Any,
    negatives: Any,
    chances: np.ndarray,
    aliases: np.ndarray,
    rate: Any,
    state: np.ndarray,
) -> None:
    """Negative sampling step: -log s(o_target . h) - sum over noise words k of log s(-o_k . h)."""
    logistic_step(hidden, gradient, outputs, target, ONE, rate)
    for _ in range(negatives):
        word = draw_noise(state, chances, aliases)
        # Skips a noise word that is the target.
        if word != target:
            logistic_step(hidden, gradient, outputs, word, ZERO, rate)


@compiled
def hierarchical_step(
    hidden: np.ndarray,
    gradient: np.ndarray,
    outputs: np.ndarray,
    target: Any,
    starts: np.ndarray,
    nodes: np.ndarray,
    labels: np.ndarray,
    rate: Any,
) -> None:
    """Hierarchical softmax step: -log of the product of s(+-o_n . h) over the nodes of a path."""
    for place in range(starts[target], starts[target + 1]):
        logistic_step(hidden, gradient, outputs, nodes[place], labels[place], rate)


@compiled
def softmax_step(
    hidden: np.ndarray,
    gradient: np.ndarray,
    outputs: np.ndarray,
    target: Any,
    rate: Any,
    chances: np.ndarray,
) -> None:
    """Full softmax step: -o_target . h + log sum over all words v of exp(o_v . h).

    `chances` is scratch memory, one number per word.
    """
    words, units = outputs.shape
    largest = np.float32(-np.inf)
    for word in range(words):
        score: Any = ZERO
        for unit in range(units):
            score += hidden[unit] * outputs[word, unit]
        chances[word] = score
        largest = max(largest, score)
    total: Any = ZERO
    for word in range(words):
        chances[word] = math.exp(chances[word] - largest)
        total += chances[word]
    for word in range(words):
        step = -chances[word] / total * rate
        if word == target:
            step += rate
        for unit in range(units):
            gradient[unit] += step * outputs[word, unit]
            outputs[word, unit] += step * hidden[unit]


class Tables(NamedTuple):
    """The two trained tables, and the constants of the training.

    `inputs` `(R, D)` are the vectors that the words are made of: the vector of a word is the mean
    of its `rows`. `outputs` has a row for each word, or for each inner node of the Huffman tree.
    `chances` and `aliases` are the alias table of the noise words.
    """

    inputs: np.ndarray
    outputs: np.ndarray
    row_starts: np.ndarray
    rows: np.ndarray
    keep: np.ndarray
    chances: np.ndarray
    aliases: np.ndarray
    path_starts: np.ndarray
    path_nodes: np.ndarray
    path_labels: np.ndarray


@compiled
def _gather(
    inputs: np.ndarray, starts: np.ndarray, rows: np.ndarray, word: Any, scale: Any, hidden: Any
) -> None:
    """Adds `scale` times the mean vector of a word's subwords to `hidden`."""
    start, end = starts[word], starts[word + 1]
    scale /= np.float32(end - start)
    for place in range(start, end):
        row = rows[place]
        for unit in range(len(hidden)):
            hidden[unit] += scale * inputs[row, unit]


@compiled
def _scatter(
    inputs: np.ndarray, starts: np.ndarray, rows: np.ndarray, word: Any, gradient: np.ndarray
) -> None:
    """Adds the gradient to each of a word's rows.

    As in word2vec and fastText, each row receives the full gradient, not the gradient of a mean,
    which would be divided by the number of rows and slow down learning by that factor.
    """
    for place in range(starts[word], starts[word + 1]):
        row = rows[place]
        for unit in range(len(gradient)):
            inputs[row, unit] += gradient[unit]


@compiled
def train_block(
    words: np.ndarray,
    tables: Any,
    bag: Any,
    loss: Any,
    window: Any,
    negatives: Any,
    rate: Any,
    state: np.ndarray,
) -> Any:
    """Trains once on a block of the text, and returns the number of predictions.

    Skip-gram: the middle word predicts each context word, and its vector is updated once for all of
    them. CBOW (`bag`): the mean of the context words predicts the middle word.

    `words` are int32, with -1 after each sentence. Each middle word samples its window, of at most
    `window` words on each side. `negatives` is the number of noise words for each target word.
    """
    inputs, outputs, starts, rows, keep, chances, aliases = tables[:7]
    paths, nodes, labels = tables[7:]
    hidden, gradient = np.zeros(inputs.shape[1], np.float32), np.zeros(inputs.shape[1], np.float32)
    scratch = np.zeros(len(keep) if loss == SOFTMAX else 0, np.float32)
    sentence = np.empty(LONGEST, np.int32)
    length = predictions = 0
    for word in words:
        if word >= 0:
            if keep[word] >= 1 or draw_share(state) < keep[word]:
                sentence[length] = word
                length += 1
            continue
        for middle in range(length):
            near = 1 + int(draw(state) % np.uint64(window))
            first, last = max(0, middle - near), min(length - 1, middle + near)
            if first == last:
                continue
            hidden[:] = 0
            gradient[:] = 0
            share = np.float32(1) / np.float32(last - first)
            if bag:
                for place in range(first, last + 1):
                    if place != middle:
                        _gather(inputs, starts, rows, sentence[place], share, hidden)
            else:
                _gather(inputs, starts, rows, sentence[middle], np.float32(1), hidden)
            for place in range(first, last + 1):
                if (place == middle) != bag:
                    continue
                target = sentence[place]
                predictions += 1
                if loss == NEGATIVE:
                    negative_step(
                        hidden, gradient, outputs, target, negatives, chances, aliases, rate, state
                    )
                elif loss == HIERARCHICAL:
                    hierarchical_step(hidden, gradient, outputs, target, paths, nodes, labels, rate)
                else:
                    softmax_step(hidden, gradient, outputs, target, rate, scratch)
            if bag:
                for place in range(first, last + 1):
                    if place != middle:
                        _scatter(inputs, starts, rows, sentence[place], gradient)
            else:
                _scatter(inputs, starts, rows, sentence[middle], gradient)
        length = 0
    return predictions
