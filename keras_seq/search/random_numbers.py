"""Counter-based random numbers for sampling: functions of seed, source, sample and step."""

from typing import Any

from keras import ops

from keras_seq import backend
from keras_seq.backend import sum_words, word

# Shape letters: B batch, S source steps, N samples.

_ODD = 0x9E3779B1


def row_keys(source: Any, seed: Any) -> Any:
    """Computes a key of 32 bits per source `(B,)`, independent of padding and the other rows."""
    ids = word(source)
    positions = word(ops.arange(backend.shape(source)[1], dtype="int32"))
    mixed = _mix(ids * word(_ODD) + _mix(positions + word(1)))
    masked = ops.where(ops.not_equal(source, 0), mixed, ops.zeros_like(mixed))
    return _mix(sum_words(masked, axis=1) + _mix(word(seed)))


def uniform_numbers(keys: Any, samples: int, step: Any) -> Any:
    """Computes uniform numbers in [0, 1) for one step of each sample: `(B, N)` multiples of 2^-24.

    The 32-bit mixing function of Wellons, "Prospecting for Hash Functions", 2018, public domain, is
    applied to key, sample and step in turn.
    """
    numbers = word(ops.arange(samples, dtype="int32")) * word(_ODD)
    mixed = _mix(ops.bitwise_xor(keys[:, None], _mix(numbers + word(1))))
    mixed = _mix(mixed + word(step) * word(_ODD))
    return ops.cast(ops.right_shift(mixed, 8), "float32") * 2.0**-24


def _mix(x: Any) -> Any:
    x = word(x)
    x = word(ops.bitwise_xor(x, ops.right_shift(x, 16)) * word(0x7FEB352D))
    x = word(ops.bitwise_xor(x, ops.right_shift(x, 15)) * word(0x846CA68B))
    return ops.bitwise_xor(x, ops.right_shift(x, 16))
