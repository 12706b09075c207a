"""Random numbers that depend on what they are for and on nothing drawn before.

A generator with a state gives other numbers to a training that goes on, to another number of
threads, to another share of the rows. Here each number is computed from the seed, the epoch, the
pair and a count, by SplitMix64: a generator that is a hash of its place.

Reference:
    Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014
"""

import enum

import numpy as np

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Purpose(enum.IntEnum):
    """What numbers are drawn for: each purpose has its own."""

    SOURCE_WORDS = 1
    TARGET_WORDS = 2
    SOURCE_PIECES = 3
    TARGET_PIECES = 4


def row_keys(seed: int, epoch: int, pairs: np.ndarray, purpose: Purpose) -> np.ndarray:
    """A key for each pair, from which its numbers follow.

    Args:
        seed: Non-negative integer.
        epoch: Non-negative integer.
        pairs: Integer array `(B,)`.
        purpose: What the numbers are for.

    Returns:
        Uint64 array `(B,)`.
    """
    # numpy guarantees what comes out of a SeedSequence. Its third number keeps these apart
    # from the order of the epoch, which is drawn from two.
    [base] = np.random.SeedSequence([seed, epoch, int(purpose)]).generate_state(1, np.uint64)
    return _mixed(base + pairs.astype(np.uint64) * _STEP)


def counter_uniforms(keys: np.ndarray, count: int) -> np.ndarray:
    """Numbers in [0, 1), as many for each key as asked for.

    Args:
        keys: Uint64 array `(B,)`, from `row_keys`.
        count: Non-negative integer. The first numbers of a key are the same whatever it is.

    Returns:
        Float64 array `(B, count)`.

    Example:

    >>> keys = row_keys(1, 0, np.arange(1000), Purpose.SOURCE_WORDS)
    >>> numbers = counter_uniforms(keys, 50)
    >>> numbers.shape, bool(abs(numbers.mean() - 0.5) < 0.01)
    ((1000, 50), True)
    """
    places = np.arange(1, count + 1, dtype=np.uint64) * _STEP
    # The upper 53 bits: as many as a float64 holds.
    return (_mixed(keys[:, None] + places) >> np.uint64(11)) * 2.0**-53


def _mixed(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * _FACTORS[0]
    x = (x ^ (x >> np.uint64(27))) * _FACTORS[1]
    return x ^ (x >> np.uint64(31))
