"""How long a row's targets may be, and how long they must be."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

# Shape letters: B batch, S source steps.


class Limits(NamedTuple):
    """Lengths in tokens, the end token included.

    Attributes:
        least: Int32 `(B,)`; no target of a row ends with fewer.
        most: Int32 `(B,)`; every target of a row is cut there.
        steps: Integer, or a scalar tensor where shapes are not static: at least
            the largest of `most`, and the same whatever the other rows are.
    """

    least: Any
    most: Any
    steps: Any


def length_limits(
    source,
    *,
    min_length=1,
    min_length_ratio=0.0,
    max_length=256,
    max_length_ratio=2.0,
    max_length_extra=10,
    prefix=None,
):
    """The limits of each row, from its own source alone.

        most  = min(max_length, max(floor(max_length_ratio S') + max_length_extra,
                                    P' + max_length_extra))
        least = min(most, max(min_length, floor(min_length_ratio S')))

    S' is the length of the row's source and P' that of its prefix, without padding.

    Args:
        source: Int tensor `(B, S)`, padded with 0.
        min_length: Integer, 1 or more.
        min_length_ratio: Float, 0 or more.
        max_length: Integer, `min_length` or more.
        max_length_ratio: Float, `min_length_ratio` or more.
        max_length_extra: Integer, 1 or more.
        prefix: Int tensor `(B, P)`, padded with 0, or None.

    Returns:
        `Limits`.

    Raises:
        ValueError: If an argument is out of range.
    """
    if max_length < 1 or max_length_extra < 1 or max_length_ratio < 0:
        raise ValueError(
            "`max_length` and `max_length_extra` must be at least 1 and `max_length_ratio` at "
            f"least 0, received {max_length}, {max_length_extra} and {max_length_ratio}."
        )
    if not 1 <= min_length <= max_length or not 0 <= min_length_ratio <= max_length_ratio:
        raise ValueError(
            "`min_length` must be between 1 and `max_length` and `min_length_ratio` between 0 and "
            f"`max_length_ratio`, received {min_length} of {max_length} and {min_length_ratio} of "
            f"{max_length_ratio}."
        )
    lengths, width = _lengths(source), ops.shape(source)[1]
    most = _scaled(lengths, max_length_ratio) + max_length_extra
    if isinstance(width, int):
        # In Python, as a number that JAX needs to know.
        steps = int(np.float32(width) * np.float32(max_length_ratio)) + max_length_extra
        larger, smaller = max, min
    else:
        steps = _scaled(width, max_length_ratio) + max_length_extra
        larger, smaller = ops.maximum, ops.minimum
    if prefix is not None:
        most = ops.maximum(most, _lengths(prefix) + max_length_extra)
        steps = larger(steps, ops.shape(prefix)[1] + max_length_extra)
    most = ops.minimum(most, max_length)
    least = ops.maximum(_scaled(lengths, min_length_ratio), min_length)
    return Limits(ops.minimum(least, most), most, smaller(steps, max_length))


def _lengths(ids):
    return ops.sum(ops.cast(ops.not_equal(ids, 0), "int32"), axis=1)


def _scaled(lengths, ratio):
    return ops.cast(ops.floor(ops.cast(lengths, "float32") * ratio), "int32")
