"""Number of values and bytes of a tensor, from its shape and type in a graph file."""

from __future__ import annotations

import math

from keras_seq.serving.graph_file.wire import Message

# Maximum number of axes of a tensor in TensorFlow.
MAX_AXES = 254
# Bytes of a value by its number in the enumeration `DataType`; 1 for types that no export uses.
# A string takes 24 bytes, besides its characters if they are more than 22.
_VALUE_BYTES = {
    1: 4,
    2: 8,
    3: 4,
    5: 2,
    7: 24,
    8: 8,
    9: 8,
    14: 2,
    17: 2,
    18: 16,
    19: 2,
    22: 4,
    23: 8,
}
# A number of values that no memory holds, and that is still small enough for a float.
_MAX_VALUES = 1 << 60


def num_values(shape: Message) -> int:
    """Returns the number of values of a tensor. An unknown size counts as one value."""
    axes = [axis.last().get(1, 0) for axis in shape.values(2)]
    if len(axes) > MAX_AXES:
        raise ValueError("too many axes")
    return math.prod(1 if size >= 1 << 63 else size for size in axes)


def num_bytes(count: int, dtype: int) -> int:
    """Returns the bytes of `count` values of a type; at most a number that no memory holds."""
    return min(count, _MAX_VALUES) * _VALUE_BYTES.get(dtype, 1)
