"""Pairs whose words are cut into randomly sampled subwords (subword regularization)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from keras_seq.data.corpus import TokenCorpus
from keras_seq.data.counter_rng import Purpose, counter_uniforms, row_keys
from keras_seq.data.layout import SIDES, Part, Side
from keras_seq.text import SubwordSampling

_PURPOSES = {"source": Purpose.SOURCE_PIECES, "target": Purpose.TARGET_PIECES}
# Pairs sampled to estimate the growth of lengths, and the fraction of them that must fit.
_TRIAL_PAIRS = 1000
_FITTING_SHARE = 0.99


class PairSampling(NamedTuple):
    """Subword sampling of the source and of the target vocabulary."""

    source: SubwordSampling
    target: SubwordSampling


@dataclass
class PlannedLengths:
    """Lengths that few samples of each pair exceed, int32 `(N,)`, for planning batches."""

    source_lengths: np.ndarray
    target_lengths: np.ndarray


class SampledPairs:
    """Pairs of a corpus with resampled subwords, with the same methods as the corpus.

    The sample of a pair depends on the seed, the epoch and the pair, not on the other pairs. A
    sample with more tokens than `limits`, the maximum source and target length, is replaced by the
    stored sequence.
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
        # Packed segments cannot be resampled, because a segment may begin within a word.
        self.is_packed = False
        self.has_features, self.max_features = corpus.has_features, corpus.max_features
        # Features of single tokens cannot be resampled with the tokens.
        self.token_features = 0
        self._sides = {
            side: _sample_side(corpus, pairs, side, getattr(sampling, side), seed, epoch, limit)
            for side, limit in zip(SIDES, limits, strict=True)
        }
        self.source_lengths = self._sides["source"].lengths
        self.target_lengths = self._sides["target"].lengths

    @property
    def tokens(self) -> int:
        """Number of tokens of both sides."""
        return sum(len(side.ids) for side in self._sides.values())

    def padded(self, part: Part, indices: np.ndarray, length: int) -> np.ndarray:
        if part == "features":
            return self._corpus.padded(part, self._pairs[indices], length)
        sampled = self._sides[part]
        is_token = np.arange(length) < sampled.lengths[indices, None]
        result = np.zeros(is_token.shape, np.int32)
        positions = sampled.starts[indices, None] + np.arange(length)
        result[is_token] = sampled.ids[positions[is_token]]
        return result

    def weights(self, indices: np.ndarray) -> np.ndarray:
        return self._corpus.weights(self._pairs[indices])

    def links(self, indices: np.ndarray) -> np.ndarray:
        """Links all sampled tokens of two words if the corpus links any of their tokens."""
        links = self._corpus.links(self._pairs[indices])
        result = [np.zeros((0, 3), np.int64)]
        ends = np.searchsorted(links[:, 0], np.arange(len(indices) + 1))
        for row, pair in enumerate(indices):
            pair_links = links[ends[row] : ends[row + 1]]
            if not len(pair_links):
                continue
            source_words, new_source = self._sides["source"].words(pair)
            target_words, new_target = self._sides["target"].words(pair)
            linked = np.zeros((source_words[-1] + 1, target_words[-1] + 1), bool)
            linked[source_words[pair_links[:, 1]], target_words[pair_links[:, 2]]] = True
            tokens = np.argwhere(linked[np.ix_(new_source, new_target)])
            result.append(np.insert(tokens, 0, row, axis=1))
        return np.concatenate(result)


@dataclass(frozen=True)
class _Side:
    """Sampled sources or targets, split into words. A token that is never resampled is a word.

    `ids` are all sampled tokens, concatenated. For each pair, `lengths` `(N,)` has the number of
    tokens, `starts` `(N,)` the position of the first token in `ids`, and `word_starts` `(N + 1,)`
    the index of the first word. For each word, `stored` and `sampled` have the number of tokens in
    the corpus and in the sample.
    """

    ids: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    word_starts: np.ndarray
    stored: np.ndarray
    sampled: np.ndarray

    def words(self, pair: int) -> tuple[np.ndarray, np.ndarray]:
        """The word number of each stored token and of each sampled token of a pair."""
        words = slice(self.word_starts[pair], self.word_starts[pair + 1])
        numbers = np.arange(self.word_starts[pair + 1] - self.word_starts[pair])
        return numbers.repeat(self.stored[words]), numbers.repeat(self.sampled[words])


def _sample_side(
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

    keys = row_keys(seed, epoch, pairs, _PURPOSES[side])
    tokens, word_bounds = ids.tolist(), [*words.tolist(), len(ids)]
    word_is_fixed = fixed[words].tolist()
    result: list[int] = []
    sampled: list[int] = []
    new_lengths = np.zeros(len(pairs), np.int32)
    for row, numbers in enumerate(_number_streams(keys, steps)):
        first, last = word_starts[row], word_starts[row + 1]
        begin = len(result)
        stored_words = [
            tuple(tokens[word_bounds[word] : word_bounds[word + 1]]) for word in range(first, last)
        ]
        row_words = list(zip(stored_words, word_is_fixed[first:last], strict=True))
        free_words = [word for word, is_fixed in row_words if not is_fixed]
        samples = iter(sampling.sample(free_words, numbers))
        for word, is_fixed in row_words:
            new_word = word if is_fixed else next(samples)
            result.extend(new_word)
            sampled.append(len(new_word))
        if len(result) - begin > limit:
            result[begin:] = tokens[word_bounds[first] : word_bounds[last]]
            sampled[first:] = stored[first:last].tolist()
        new_lengths[row] = len(result) - begin
    return _Side(
        np.array(result, np.int32),
        new_lengths,
        np.cumsum(new_lengths, dtype=np.int64) - new_lengths,
        word_starts,
        stored,
        np.array(sampled, np.int64),
    )


def _number_streams(keys: np.ndarray, count: int) -> Iterator[Iterator[float]]:
    """Yields an endless iterator of random numbers per key.

    The first `count` numbers, usually enough, are computed for all keys at once.
    """
    for key, first in zip(keys, counter_uniforms(keys, count).tolist(), strict=True):
        yield chain(first, _later_numbers(key, count))


def _later_numbers(key: np.ndarray, skip: int) -> Iterator[float]:
    for doublings in count():
        start = skip + 64 * (2**doublings - 1)
        numbers = counter_uniforms(np.array([key]), start + 64 * 2**doublings)
        yield from numbers[0, start:].tolist()


def plan_lengths(corpus: TokenCorpus, sampling: PairSampling, seed: int) -> PlannedLengths:
    """Estimates lengths that nearly all sampled sequences fit.

    The bound for a stored length n is g n + c sqrt(n), as for a sum of n independent changes. g and
    c are estimated from a trial sample of some pairs and are deterministic for a given corpus,
    sampling and seed. No bound exceeds the maximum length of the corpus.
    """
    trial = np.unique(np.linspace(0, len(corpus) - 1, _TRIAL_PAIRS).astype(np.int64))
    longest = corpus.max_source_length, corpus.max_target_length
    sampled = SampledPairs(corpus, trial, sampling, seed, 0, longest)
    return PlannedLengths(
        _bounds(corpus.source_lengths, trial, sampled.source_lengths, longest[0]),
        _bounds(corpus.target_lengths, trial, sampled.target_lengths, longest[1]),
    )


def _bounds(
    lengths: np.ndarray, trial: np.ndarray, sampled: np.ndarray, longest: int
) -> np.ndarray:
    stored = lengths[trial]
    # Integers in units of 1/64, so that the bound does not depend on rounding of a float sum.
    growth = -(-64 * int(sampled.sum()) // int(stored.sum())) / 64
    spread = sorted(
        math.ceil(8 * max(0.0, new - growth * old) / math.sqrt(old))
        for old, new in zip(stored.tolist(), sampled.tolist(), strict=True)
    )
    c = spread[min(math.ceil(_FITTING_SHARE * len(spread)), len(spread)) - 1] / 8
    # A table by length is fast, because even millions of pairs have few different lengths.
    numbers = np.arange(int(lengths.max()) + 1, dtype=np.float64)
    table = np.ceil(growth * numbers + c * np.sqrt(numbers)).astype(np.int32)
    table = np.maximum(np.minimum(table, longest), numbers.astype(np.int32))
    return table[lengths]
