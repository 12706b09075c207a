"""Data augmentation for small corpora: concatenates random training pairs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from keras_seq.data import TokenPair
from keras_seq.text import UNK_ID

# Size of the sample of a large corpus from which pairs are joined.
_MAX_SAMPLE = 100_000


class Concatenation:
    """Adds training pairs that each concatenate two random pairs of the corpus.

    Joined pairs show the model longer sequences, other positions and other contexts, which
    regularizes the attention on small corpora. The unknown token separates the two parts on both
    sides. Without it, tasks that depend on order, such as reversing words, would change.

    `rate` is the number of added pairs for each pair of the corpus. Joined pairs above the maximum
    lengths are left out.

    Reference:
        Nguyen, Murray and Chiang, "Data Augmentation by Concatenation for Low-Resource
        Translation: A Mystery and a Solution", IWSLT 2021, https://arxiv.org/abs/2105.01691
    """

    def __init__(
        self, rate: float, max_source_length: int, max_target_length: int, seed: int
    ) -> None:
        self.added = 0
        self._rate = rate
        self._longest = max_source_length, max_target_length
        self._random = random.Random(seed)

    def __call__(self, pairs: Iterable[TokenPair]) -> Iterator[TokenPair]:
        """Yields all pairs of the corpus, then the added pairs."""
        sample: list[TokenPair] = []
        count = 0
        for pair in pairs:
            yield pair
            if not (len(pair.source) and len(pair.target) and pair.weight):
                continue
            count += 1
            if len(sample) < _MAX_SAMPLE:
                sample.append(pair)
            elif (index := self._random.randrange(count)) < _MAX_SAMPLE:
                sample[index] = pair
        for _ in range(round(self._rate * count)):
            joined = _join(self._random.choice(sample), self._random.choice(sample))
            if len(joined.source) <= self._longest[0] and len(joined.target) <= self._longest[1]:
                self.added += 1
                yield joined


def _join(first: TokenPair, second: TokenPair) -> TokenPair:
    sources, targets = len(first.source) + 1, len(first.target) + 1
    return TokenPair(
        [*first.source, UNK_ID, *second.source],
        [*first.target, UNK_ID, *second.target],
        (first.weight + second.weight) / 2,
        [*first.links, *((source + sources, target + targets) for source, target in second.links)],
    )
