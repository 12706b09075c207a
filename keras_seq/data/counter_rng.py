"""A counter-based random number generator (SplitMix64): each number is a hash, without a state."""

import enum

import numpy as np

# Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. Without a state,
# the numbers do not depend on resuming, on threads or on the split of rows between hosts.
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Purpose(enum.IntEnum):
    """Uses of random numbers, each with its own independent stream."""

    SOURCE_WORDS = 1
    TARGET_WORDS = 2
    SOURCE_PIECES = 3
    TARGET_PIECES = 4
    UNSEEN_TOKENS = 5


def row_keys(seed: int, epoch: int, pairs: np.ndarray, purpose: Purpose) -> np.ndarray:
    """Computes the uint64 generator key `(B,)` of each pair."""
    # numpy guarantees the output of a SeedSequence. The third number makes it differ from the
    # SeedSequence of `Plan.shuffled`, which has two numbers.
    [base] = np.random.SeedSequence([seed, epoch, int(purpose)]).generate_state(1, np.uint64)
    return _mix(base + pairs.astype(np.uint64) * _INCREMENT)


def counter_uniforms(keys: np.ndarray, count: int) -> np.ndarray:
    """Computes the first `count` uniform numbers in [0, 1) of each key: float64 `(B, count)`.

    A larger count only appends numbers.

    Example:

    >>> keys = row_keys(1, 0, np.arange(1000), Purpose.SOURCE_WORDS)
    >>> numbers = counter_uniforms(keys, 50)
    >>> numbers.shape, bool(abs(numbers.mean() - 0.5) < 0.01)
    ((1000, 50), True)
    """
    return uniforms_at(keys, np.arange(1, count + 1)[None])


def uniforms_at(keys: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """Computes the uniform numbers in [0, 1) of given counters of each key: float64 `(B, C)`.

    `counters` are integers `(B, C)` or `(1, C)`; counter 1 is the first number of a key.
    """
    offsets = counters.astype(np.uint64) * _INCREMENT
    # A float64 has 53 significant bits.
    return (_mix(keys[:, None] + offsets) >> np.uint64(11)) * 2.0**-53


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * _FACTORS[0]
    x = (x ^ (x >> np.uint64(27))) * _FACTORS[1]
    return x ^ (x >> np.uint64(31))
