"""Bytes of the constants and variables of a graph, compared with those of its files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from keras_seq.process.memory import require_memory, shown_size
from keras_seq.serving.graph_file.wire import Message, attribute_values
from keras_seq.storage import open_regular, reason, size_on_disk
from keras_seq.text import InputError

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
# Maximum ratio of a constant to its bytes in the graph file: an empty string takes two there.
_MAX_RATIO = 12
# Bytes of constants that may go beyond the ratio. TensorFlow stores equal values only once.
_EQUAL_VALUES = 64 << 20
# Bytes of variables that may go beyond those of their files.
_SMALL_VARIABLES = 1 << 20
# A number of values that no memory holds, and that is still small enough for a float.
_MAX_VALUES = 1 << 60
# Maximum number of axes of a tensor in TensorFlow.
_MAX_AXES = 254


def check_sizes(version: Path, meta_graph: Message) -> None:
    """Raises InputError if constants or variables are larger than their files or the memory.

    Operations such as `Fill` make tensors of any size when they run; this check cannot know them.
    """
    graph = meta_graph.only(2)
    constants = beyond_ratio = variables = 0
    for node in _nodes(graph):
        fields = list(node.fields())
        attributes = [value for number, value in fields if number == 5]
        for tensor in (tensor for entry in attributes for tensor in _tensors(entry)):
            size = _size(tensor.only(2), tensor.last().get(1, 0))
            constants += size
            beyond_ratio += max(0, size - _MAX_RATIO * tensor.num_bytes)
        if any(number == 2 and value.text() == "VarHandleOp" for number, value in fields):
            named = {entry.only(1).text(): entry.only(2) for entry in attributes}
            if "shape" in named and "dtype" in named:
                variables += _size(named["shape"].only(7), named["dtype"].last().get(6, 0))
    stored = sum(map(_stored_bytes, sorted((version / "variables").glob("variables.data-*"))))
    if beyond_ratio > _EQUAL_VALUES:
        raise InputError(
            f"{version}: its constants take {shown_size(constants)}, far more than the graph file"
        )
    if variables > stored + _SMALL_VARIABLES:
        raise InputError(
            f"{version}: its variables take {shown_size(variables)}, but their files contain "
            f"{shown_size(stored)}"
        )
    require_memory(constants + stored, f"{version}: the model", "use a computer with more memory")


def _stored_bytes(path: Path) -> int:
    """Returns the size of a file of variables; raises InputError if it is sparse."""
    try:
        with open_regular(path) as stream:
            status = os.fstat(stream.fileno())
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    if size_on_disk(status) < status.st_size:
        raise InputError(f"{path}: a sparse file: it has holes instead of weights")
    return status.st_size


def _nodes(graph: Message) -> Iterator[Message]:
    yield from graph.values(1)
    for library in graph.values(2):
        for function in library.values(1):
            yield from function.values(3)


def _tensors(attribute: Message) -> Iterator[Message]:
    """Yields the tensors in an attribute of a node, including those of nested functions."""
    for value in attribute_values(attribute):
        yield from value.values(8)
        for items in value.values(1):
            yield from items.values(8)


def _size(shape: Message, dtype: int) -> int:
    """Returns the bytes of a tensor. An unknown size counts as one value."""
    axes = [axis.last().get(1, 0) for axis in shape.values(2)]
    if len(axes) > _MAX_AXES:
        raise ValueError("too many axes")
    count = math.prod(1 if size >= 1 << 63 else size for size in axes)
    return min(count, _MAX_VALUES) * _VALUE_BYTES.get(dtype, 1)
