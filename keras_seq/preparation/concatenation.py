"""Data augmentation for small corpora: concatenates random training pairs."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_seq.data import TokenPair
from keras_seq.preparation.encoding import Separators
from keras_seq.settings import Settings, SettingsError

# Size of the sample of a large corpus from which pairs are joined.
_MAX_SAMPLE = 100_000


def check_concatenation(settings: Settings) -> None:
    """Raises SettingsError if pairs with features are to be joined."""
    data = settings.data
    if data.concatenation and data.has_features:
        raise SettingsError(
            f"data.concatenation: received {data.concatenation:g}, expected 0 with features in "
            "data.columns: a joined pair mixes the features of two pairs"
        )


class Concatenation:
    """Adds training pairs that each concatenate random pairs of the corpus, by default two.

    Joined pairs show the model longer sequences, other positions and other contexts, which
    regularizes the attention on small corpora. `separators` returns the ids between two parts of
    each side; see `Encoder`.

    `rate` is the number of added pairs for each pair of the corpus, and `max_parts` the largest
    number of pairs in one of them. Joined pairs longer than `longest`, the maximum lengths of both
    sides, are left out.

    Reference:
        Nguyen, Murray and Chiang, "Data Augmentation by Concatenation for Low-Resource
        Translation: A Mystery and a Solution", IWSLT 2021, https://arxiv.org/abs/2105.01691
    """

    # About as many ids are kept in memory; samples of recordings are many.
    max_ids = 50_000_000

    def __init__(
        self,
        rate: float,
        longest: tuple[int, int],
        separators: Callable[[random.Random], Separators],
        seed: int,
        max_parts: int = 2,
    ) -> None:
        self.added = 0
        self._rate = rate
        self._longest, self._separators, self._max_parts = longest, separators, max_parts
        self._random = random.Random(seed)

    def __call__(self, pairs: Iterable[TokenPair]) -> Iterator[TokenPair]:
        """Yields all pairs of the corpus, then the added pairs."""
        if not self._rate:
            yield from pairs
            return
        sample: list[TokenPair] = []
        count = ids = 0
        for pair in pairs:
            yield pair
            if not (len(pair.source) and len(pair.target) and pair.weight):
                continue
            count += 1
            if len(sample) < _MAX_SAMPLE and ids < self.max_ids:
                sample.append(pair)
                ids += len(pair.source) + len(pair.target)
            elif (index := self._random.randrange(count)) < len(sample):
                sample[index] = pair
        for _ in range(round(self._rate * count)):
            parts = 2 if self._max_parts == 2 else self._random.randint(2, self._max_parts)
            joined = functools.reduce(self._join, self._random.choices(sample, k=parts))
            if len(joined.source) <= self._longest[0] and len(joined.target) <= self._longest[1]:
                self.added += 1
                yield joined

    def _join(self, first: TokenPair, second: TokenPair) -> TokenPair:
        source_ids, target_ids = self._separators(self._random)
        sources, targets = len(first.source) + len(source_ids), len(first.target) + len(target_ids)
        return TokenPair(
            _chained(first.source, source_ids, second.source),
            _chained(first.target, target_ids, second.target),
            (first.weight + second.weight) / 2,
            [
                *first.links,
                *((source + sources, target + targets) for source, target in second.links),
            ],
        )


def _chained(first: Any, separator: Sequence[int], second: Any) -> Any:
    """Joins ids, as an array if they are arrays."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, np.array(separator, first.dtype), second])
    return [*first, *separator, *second]
