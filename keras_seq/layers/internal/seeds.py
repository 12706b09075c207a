"""One seed for a whole, many for its parts."""

import random


def split_seed(seed, count):
    """Draws `count` seeds from one, or as many None from None.

    Two dropout layers with one seed would drop the same units at every step.

    >>> split_seed(None, 2)
    [None, None]
    >>> len(set(split_seed(7, 3)))
    3
    """
    if seed is None:
        return [None] * count
    generator = random.Random(seed)
    return [generator.randrange(2**31) for _ in range(count)]
