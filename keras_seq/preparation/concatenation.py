"""More training pairs for a small corpus: random pairs joined, two by two."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from keras_seq.data import TokenPair
from keras_seq.text import UNK_ID

# Pairs of a large corpus that are joined are drawn from this many.
_MAX_KEPT = 100_000


class Concatenation:
    """Adds pairs that are each two random pairs of the corpus, one after the other.

    A joined pair shows the model longer sequences, other positions and other contexts. On small
    corpora this regularizes the attention. The unknown token separates the two on both sides:
    without it the task would be another one wherever order matters, such as reversing words.

    Args:
        rate: Pairs added for each pair of the corpus.
        max_source_length, max_target_length: Longer pairs are not made, in tokens.
        seed: Makes the choice reproducible.

    Attributes:
        added: Pairs added so far.

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
        """Yields all pairs, and then those added."""
        kept: list[TokenPair] = []
        count = 0
        for pair in pairs:
            yield pair
            if not (len(pair.source) and len(pair.target) and pair.weight):
                continue
            count += 1
            if len(kept) < _MAX_KEPT:
                kept.append(pair)
            elif (place := self._random.randrange(count)) < _MAX_KEPT:
                kept[place] = pair
        for _ in range(round(self._rate * count)):
            joined = _joined(self._random.choice(kept), self._random.choice(kept))
            if len(joined.source) <= self._longest[0] and len(joined.target) <= self._longest[1]:
                self.added += 1
                yield joined


def _joined(first: TokenPair, second: TokenPair) -> TokenPair:
    sources, targets = len(first.source) + 1, len(first.target) + 1
    return TokenPair(
        [*first.source, UNK_ID, *second.source],
        [*first.target, UNK_ID, *second.target],
        (first.weight + second.weight) / 2,
        [*first.links, *((source + sources, target + targets) for source, target in second.links)],
    )
