"""Counter-based random numbers for sampling: functions of seed, source, sample and step."""

from typing import Any

from keras import ops

from keras_seq import backend

# Shape letters: B batch, S source steps, N samples.

_ODD = 0x9E3779B1


def row_keys(source: Any, seed: Any) -> Any:
    """Computes a uint32 key `(B,)` per source, independent of padding and of the other rows."""
    ids = ops.cast(source, "uint32")
    positions = ops.cast(ops.arange(backend.shape(source)[1], dtype="int32"), "uint32")
    mixed = _mix(ids * _word(_ODD) + _mix(positions + _word(1)))
    masked = ops.where(ops.not_equal(source, 0), mixed, ops.zeros_like(mixed))
    return _mix(ops.sum(masked, axis=1) + _mix(ops.cast(seed, "uint32")))


def uniform_numbers(keys: Any, samples: int, step: Any) -> Any:
    """Computes uniform numbers in [0, 1) for one step of each sample: `(B, N)` multiples of 2^-24.

    The 32-bit mixing function of Wellons, "Prospecting for Hash Functions", 2018, public domain, is
    applied to key, sample and step in turn.
    """
    numbers = ops.cast(ops.arange(samples, dtype="int32"), "uint32") * _word(_ODD)
    mixed = _mix(ops.bitwise_xor(keys[:, None], _mix(numbers + _word(1))))
    mixed = _mix(mixed + ops.cast(step, "uint32") * _word(_ODD))
    return ops.cast(ops.right_shift(mixed, 8), "float32") * 2.0**-24


def _word(value: Any) -> Any:
    return ops.cast(value, "uint32")


def _mix(x: Any) -> Any:
    x = ops.bitwise_xor(x, ops.right_shift(x, 16)) * _word(0x7FEB352D)
    x = ops.bitwise_xor(x, ops.right_shift(x, 15)) * _word(0x846CA68B)
    return ops.bitwise_xor(x, ops.right_shift(x, 16))
