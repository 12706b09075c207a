"""Parts of a training text (`data.share`). A smaller part is within each larger one."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def random_share(examples: Iterable[T], share: float, seed: int) -> Iterator[T]:
    """Yields about this share of the examples, in order.

    Each example gets a random number that depends only on the seed and the position, so the
    examples of a smaller share are among those of a larger one.

    Example:

    >>> [len([*random_share(range(1000), share, seed=1)]) for share in (0.25, 0.5, 1.0)]
    [249, 509, 1000]
    """
    # A seed of text, because the held-out pairs are sampled with the number itself.
    generator = random.Random(f"share {seed}")
    return (example for example in examples if generator.random() < share)


def first_share(lines: Iterable[T], share: float, count: int) -> Iterator[T]:
    """Yields the first part of the lines of one text, whose order matters.

    Args:
        lines: The lines.
        share: Share of the lines, above 0 and at most 1.
        count: Number of all lines.

    Example:

    >>> [*first_share("abcdefgh", 0.25, count=8)]
    ['a', 'b']
    """
    return itertools.islice(lines, math.ceil(share * count))
