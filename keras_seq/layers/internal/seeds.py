"""Random seeds for the parts of a layer or model."""

import random
from typing import Any


def split_seed(seed: int | None, count: int) -> list[Any]:
    """Derives `count` seeds from `seed`. Returns a list of None if `seed` is None.

    Two dropout layers with the same seed would drop the same units at each step.

    >>> split_seed(None, 2)
    [None, None]
    >>> len(set(split_seed(7, 3)))
    3
    """
    if seed is None:
        return [None] * count
    generator = random.Random(seed)
    return [generator.randrange(2**31) for _ in range(count)]
