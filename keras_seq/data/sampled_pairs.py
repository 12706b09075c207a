"""The pairs of a batch, cut into other subwords than those that are stored."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from keras_seq.data.corpus import TokenCorpus
from keras_seq.data.counter_rng import Purpose, counter_uniforms, row_keys
from keras_seq.data.layout import SIDES, Side
from keras_seq.text import SubwordSampling

_PURPOSES = {"source": Purpose.SOURCE_PIECES, "target": Purpose.TARGET_PIECES}
# Pairs that are drawn once to see how much longer they become, and the share of them that fits.
_TRIAL_PAIRS = 1000
_FITTING_SHARE = 0.99


class PairSampling(NamedTuple):
    """How the lines of both sides are cut anew.

    Attributes:
        source: That of the source vocabulary.
        target: That of the target vocabulary.
    """

    source: SubwordSampling
    target: SubwordSampling


@dataclass
class PlannedLengths:
    """Lengths to plan batches by: what nearly all drawn sequences fit into.

    Attributes:
        source_lengths: Int32 array `(N,)`, not below that of the corpus.
        target_lengths: Int32 array `(N,)`, the same.
    """

    source_lengths: np.ndarray
    target_lengths: np.ndarray


class SampledPairs:
    """Some pairs of a corpus, their words cut by chance; read as a corpus is.

    What is drawn for a pair depends on the seed, the epoch and the pair, not on the other pairs.

    Args:
        corpus: The corpus.
        pairs: Integer array `(N,)`; they become pairs 0 to N - 1 of this.
        sampling: The ways to cut.
        seed: Non-negative integer.
        epoch: Non-negative integer.
        limits: Longest source and target, in tokens. A longer one stays as it is stored.

    Attributes:
        source_lengths: Int32 array `(N,)`.
        target_lengths: Int32 array `(N,)`.
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        pairs: np.ndarray,
        sampling: PairSampling,
        seed: int,
        epoch: int,
        limits: tuple[int, int],
    ) -> None:
        self._corpus = corpus
        self._pairs = pairs
        self.has_weights = corpus.has_weights
        self.has_alignments = corpus.has_alignments
        # Pieces of a stream are not cut anew: a piece may begin within a word.
        self.is_packed = False
        self._sides = {
            side: _draw(corpus, pairs, side, getattr(sampling, side), seed, epoch, limit)
            for side, limit in zip(SIDES, limits, strict=True)
        }
        self.source_lengths = self._sides["source"].lengths
        self.target_lengths = self._sides["target"].lengths

    @property
    def tokens(self) -> int:
        """The tokens of both sides."""
        return sum(len(side.ids) for side in self._sides.values())

    def padded(self, side: Side, indices: np.ndarray, length: int) -> np.ndarray:
        """The ids of sequences, zeros behind each: int32 `(B, length)`."""
        drawn = self._sides[side]
        real = np.arange(length) < drawn.lengths[indices, None]
        result = np.zeros(real.shape, np.int32)
        places = drawn.starts[indices, None] + np.arange(length)
        result[real] = drawn.ids[places[real]]
        return result

    def weights(self, indices: np.ndarray) -> np.ndarray:
        """What pairs count in the loss: float32 `(B,)`."""
        return self._corpus.weights(self._pairs[indices])

    def links(self, indices: np.ndarray) -> np.ndarray:
        """Place in `indices`, source token, target token: int64 `(L, 3)`.

        All tokens of two words are linked if any were, as the stored ones were cut.
        """
        links = self._corpus.links(self._pairs[indices])
        found = [np.zeros((0, 3), np.int64)]
        ends = np.searchsorted(links[:, 0], np.arange(len(indices) + 1))
        for row, pair in enumerate(indices):
            of_pair = links[ends[row] : ends[row + 1]]
            if not len(of_pair):
                continue
            source_words, new_source = self._sides["source"].words(pair)
            target_words, new_target = self._sides["target"].words(pair)
            linked = np.zeros((source_words[-1] + 1, target_words[-1] + 1), bool)
            linked[source_words[of_pair[:, 1]], target_words[of_pair[:, 2]]] = True
            tokens = np.argwhere(linked[np.ix_(new_source, new_target)])
            found.append(np.insert(tokens, 0, row, axis=1))
        return np.concatenate(found)


@dataclass(frozen=True)
class _Side:
    """One side of the pairs, as drawn; a word here is also what is between fixed tokens.

    Attributes:
        ids: Int32, all drawn tokens.
        lengths: Int32 `(N,)`, how many of them are each pair's.
        starts: Int64 `(N,)`, where these begin.
        word_starts: Int64 `(N + 1,)`, where the words of each pair begin in the next two.
        stored: Int64, tokens of each word as stored.
        drawn: Int64, tokens of each word as drawn.
    """

    ids: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    word_starts: np.ndarray
    stored: np.ndarray
    drawn: np.ndarray

    def words(self, pair: int) -> tuple[np.ndarray, np.ndarray]:
        """The word that each token of a pair belongs to: of those stored, of those drawn."""
        here = slice(self.word_starts[pair], self.word_starts[pair + 1])
        numbers = np.arange(self.word_starts[pair + 1] - self.word_starts[pair])
        return numbers.repeat(self.stored[here]), numbers.repeat(self.drawn[here])


def _draw(
    corpus: TokenCorpus,
    pairs: np.ndarray,
    side: Side,
    sampling: SubwordSampling,
    seed: int,
    epoch: int,
    limit: int,
) -> _Side:
    lengths = (corpus.source_lengths if side == "source" else corpus.target_lengths)[pairs]
    steps = int(lengths.max(initial=0))
    ids = corpus.padded(side, pairs, steps)[np.arange(steps) < lengths[:, None]]
    row_starts = np.cumsum(lengths, dtype=np.int64) - lengths
    fixed = sampling.fixed[ids]
    begins = sampling.begins[ids] | fixed
    begins[1:] |= fixed[:-1]
    begins[row_starts] = True
    words = np.flatnonzero(begins)
    stored = np.diff(words, append=len(ids))
    word_starts = np.searchsorted(words, np.append(row_starts, len(ids)))

    numbers = _number_streams(row_keys(seed, epoch, pairs, _PURPOSES[side]), steps)
    tokens, word_bounds = ids.tolist(), [*words.tolist(), len(ids)]
    is_fixed = fixed[words].tolist()
    result: list[int] = []
    drawn: list[int] = []
    new_lengths = np.zeros(len(pairs), np.int32)
    for row, chance in enumerate(numbers):
        first, last = word_starts[row], word_starts[row + 1]
        begin = len(result)
        cuts = [
            tuple(tokens[word_bounds[word] : word_bounds[word + 1]]) for word in range(first, last)
        ]
        free = [word for word, is_one in zip(cuts, is_fixed[first:last], strict=True) if not is_one]
        ways = iter(sampling.cut(free, chance))
        for word, is_one in zip(cuts, is_fixed[first:last], strict=True):
            new = word if is_one else next(ways)
            result.extend(new)
            drawn.append(len(new))
        if len(result) - begin > limit:
            result[begin:] = tokens[word_bounds[first] : word_bounds[last]]
            drawn[first:] = stored[first:last].tolist()
        new_lengths[row] = len(result) - begin
    return _Side(
        np.array(result, np.int32),
        new_lengths,
        np.cumsum(new_lengths, dtype=np.int64) - new_lengths,
        word_starts,
        stored,
        np.array(drawn, np.int64),
    )


def _number_streams(keys: np.ndarray, count: int) -> Iterator[Iterator[float]]:
    """For each key its numbers without end; the first `count`, most often enough, at once."""
    for key, first in zip(keys, counter_uniforms(keys, count).tolist(), strict=True):
        yield chain(first, _later_numbers(key, count))


def _later_numbers(key: np.ndarray, begun: int) -> Iterator[float]:
    for doubled in count():
        start = begun + 64 * (2**doubled - 1)
        numbers = counter_uniforms(np.array([key]), start + 64 * 2**doubled)
        yield from numbers[0, start:].tolist()


def plan_lengths(corpus: TokenCorpus, sampling: PairSampling, seed: int) -> PlannedLengths:
    """How long sequences may become, so that nearly all that is drawn fits.

    The bound grows with the length n as g n + c sqrt(n), for a sum of n independent
    changes. g and c are found by drawing for some pairs; they are the same for the same
    corpus, sampling and seed. No bound is above the longest sequence that was kept.

    Args:
        corpus: The corpus, not empty.
        sampling: The ways to cut.
        seed: Non-negative integer.
    """
    trial = np.unique(np.linspace(0, len(corpus) - 1, _TRIAL_PAIRS).astype(np.int64))
    longest = corpus.max_source_length, corpus.max_target_length
    drawn = SampledPairs(corpus, trial, sampling, seed, 0, longest)
    return PlannedLengths(
        _bounds(corpus.source_lengths, trial, drawn.source_lengths, longest[0]),
        _bounds(corpus.target_lengths, trial, drawn.target_lengths, longest[1]),
    )


def _bounds(lengths: np.ndarray, trial: np.ndarray, drawn: np.ndarray, longest: int) -> np.ndarray:
    before = lengths[trial]
    # In 64ths, from whole numbers, so that no rounding of a sum can move a bound.
    growth = -(-64 * int(drawn.sum()) // int(before.sum())) / 64
    spread = [
        math.ceil(8 * max(0.0, new - growth * old) / math.sqrt(old))
        for old, new in zip(before.tolist(), drawn.tolist(), strict=True)
    ]
    spread.sort()
    c = spread[min(math.ceil(_FITTING_SHARE * len(spread)), len(spread)) - 1] / 8
    # One entry for each length that there is; pairs may be many millions.
    numbers = np.arange(int(lengths.max()) + 1, dtype=np.float64)
    table = np.ceil(growth * numbers + c * np.sqrt(numbers)).astype(np.int32)
    table = np.maximum(np.minimum(table, longest), numbers.astype(np.int32))
    return table[lengths]
