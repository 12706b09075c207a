"""Bytes of the constants and variables of a graph, compared with those of its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from keras_seq.process.memory import require_memory, shown_size
from keras_seq.serving.graph_file.made_tensors import made_bytes
from keras_seq.serving.graph_file.tensor_sizes import num_bytes, num_values
from keras_seq.serving.graph_file.wire import Message, attribute_values
from keras_seq.storage import open_regular, reason, size_on_disk
from keras_seq.text import InputError

# Maximum ratio of a constant to its bytes in the graph file: an empty string takes two there.
_MAX_RATIO = 12
# Bytes of constants that may go beyond the ratio, and of tensors that operations make of constant
# sizes. TensorFlow stores equal values only once.
_EQUAL_VALUES = 64 << 20
# Bytes of variables that may go beyond those of their files.
_SMALL_VARIABLES = 1 << 20


def check_sizes(version: Path, meta_graph: Message) -> None:
    """Raises InputError if constants or variables are larger than their files or the memory.

    Tensors that an operation such as `Fill` makes of a constant size count as constants. A graph
    may also compute such sizes when it runs, which this check cannot know, and some rarer
    operations, such as those of ragged tensors, are not counted.
    """
    graph = meta_graph.only(2)
    constants = beyond_ratio = variables = 0
    made = sum(size for nodes in _graphs(graph) for size in made_bytes(nodes))
    if made > _EQUAL_VALUES:
        raise InputError(
            f"{version}: its operations make tensors of {shown_size(made)} from constant sizes, "
            f"expected at most {shown_size(_EQUAL_VALUES)}"
        )
    for node in (node for nodes in _graphs(graph) for node in nodes):
        fields = list(node.fields())
        attributes = [value for number, value in fields if number == 5]
        for tensor in (tensor for entry in attributes for tensor in _tensors(entry)):
            size = num_bytes(num_values(tensor.only(2)), tensor.last().get(1, 0))
            constants += size
            beyond_ratio += max(0, size - _MAX_RATIO * tensor.num_bytes)
        if any(number == 2 and value.text() == "VarHandleOp" for number, value in fields):
            named = {entry.only(1).text(): entry.only(2) for entry in attributes}
            if "shape" in named and "dtype" in named:
                count = num_values(named["shape"].only(7))
                variables += num_bytes(count, named["dtype"].last().get(6, 0))
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


def _graphs(graph: Message) -> Iterator[Iterator[Message]]:
    """Yields the nodes of the graph and of each function."""
    yield graph.values(1)
    for library in graph.values(2):
        for function in library.values(1):
            yield function.values(3)


def _tensors(attribute: Message) -> Iterator[Message]:
    """Yields the tensors in an attribute of a node, including those of nested functions."""
    for value in attribute_values(attribute):
        yield from value.values(8)
        for items in value.values(1):
            yield from items.values(8)
