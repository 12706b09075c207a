"""Length limits of the targets of each row."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.search.config import SearchConfig

# Shape letters: B batch, S source steps, P prefix steps.


class Limits(NamedTuple):
    """Length limits of targets in tokens, including the end token.

    Attributes:
        min_length: Int32 `(B,)`; the minimum length of the targets of each row.
        max_length: Int32 `(B,)`; longer targets of a row are truncated to this length.
        steps: Integer, or a scalar tensor if shapes are dynamic. At least the largest
            `max_length`, and independent of the content of the rows.
    """

    min_length: Any
    max_length: Any
    steps: Any


def length_limits(source: Any, config: SearchConfig, prefix: Any = None) -> Limits:
    """Computes the limits of each row from its own source and prefix; see `SearchConfig`."""
    ratio, extra = config.max_length_ratio, config.max_length_extra
    lengths, width = _lengths(source), backend.shape(source)[1]
    max_length = _scaled(lengths, ratio) + extra
    if isinstance(width, int):
        # A Python number, because JAX compiles for a fixed number of steps.
        steps = int(np.float32(width) * np.float32(ratio)) + extra
        larger, smaller = max, min
    else:
        steps = _scaled(width, ratio) + extra
        larger, smaller = ops.maximum, ops.minimum
    if prefix is not None:
        max_length = ops.maximum(max_length, _lengths(prefix) + extra)
        steps = larger(steps, backend.shape(prefix)[1] + extra)
    max_length = ops.minimum(max_length, config.max_length)
    min_length = ops.maximum(_scaled(lengths, config.min_length_ratio), config.min_length)
    return Limits(
        ops.minimum(min_length, max_length), max_length, smaller(steps, config.max_length)
    )


def _lengths(ids: Any) -> Any:
    return ops.sum(ops.cast(ops.not_equal(ids, 0), "int32"), axis=1)


def _scaled(lengths: Any, ratio: float) -> Any:
    return ops.cast(ops.floor(ops.cast(lengths, "float32") * ratio), "int32")
