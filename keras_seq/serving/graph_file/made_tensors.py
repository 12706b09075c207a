"""Bytes of tensors that operations of a graph make from constant sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keras_seq.serving.graph_file.tensor_sizes import MAX_AXES, num_bytes, num_values
from keras_seq.serving.graph_file.wire import Message, node_name

# The input of an operation that is the shape of its output, or a lower bound of its number of
# values.
_SIZE_INPUT = {
    "BroadcastTo": 1,
    "DenseBincount": 1,
    "Fill": 0,
    "OneHot": 1,
    "Pad": 1,
    "PadV2": 1,
    "ScatterNd": 2,
    "Tile": 1,
    "UnsortedSegmentSum": 2,
}
# Operations whose output has the values of the first input, as many times as the size says.
_REPEATING = {"OneHot", "Tile"}
_PADDING = {"Pad", "PadV2"}
# Nodes that are followed to a constant. A cycle has no end.
_MAX_STEPS = 16
# Types of sizes in the enumeration `DataType`: the format and the bits of their values, and their
# field in a `TensorProto`, see tensorflow/core/framework/tensor.proto.
_INTEGERS = {3: ("i", 32, 7), 9: ("q", 64, 10)}


class _Node(NamedTuple):
    """A `NodeDef`; `inputs` are names of nodes, and `attributes` are entries of a map."""

    op: str
    inputs: list[str]
    attributes: list[Message]


def made_bytes(nodes: Iterable[Message]) -> Iterator[int]:
    """Yields the least bytes of each tensor whose size is a constant, in the nodes of a graph."""
    graph = dict(_parsed(nodes))
    for name, node in graph.items():
        if node.op in _SIZE_INPUT:
            yield num_bytes(_least_values(graph, name), _attribute(node, "T").last().get(6, 0))
        elif node.op == "Range":
            # A SavedModel leaves out the attribute of its default type, int32. No type is smaller.
            yield 4 * _range_values(graph, node)


def _parsed(nodes: Iterable[Message]) -> Iterator[tuple[str, _Node]]:
    """Yields the names and the nodes of the operations that matter here."""
    for message in nodes:
        name = op = ""
        inputs: list[Message] = []
        attributes: list[Message] = []
        for field, value in message.fields():
            if field == 1:
                name = value.text()
            elif field == 2:
                op = value.text()
            elif field == 3:
                inputs.append(value)
            elif field == 5:
                attributes.append(value)
        if op in _SIZE_INPUT or op in ("Const", "Identity", "Range"):
            yield name, _Node(op, [node_name(value.text()) for value in inputs], attributes)


def _attribute(node: _Node, name: str) -> Message:
    """Returns the value of an attribute; the last one of this name counts."""
    entries = [entry for entry in node.attributes if entry.only(1).text() == name]
    value: Message = entries[-1].only(2)
    return value


def _least_values(graph: dict[str, _Node], name: str, steps: int = _MAX_STEPS) -> int:
    """Returns the number of values of a tensor; 1 for sizes that are not constant."""
    node = graph.get(name)
    if node is None or not steps:
        return 1
    if node.op == "Const":
        return num_values(_attribute(node, "value").only(8).only(2))
    if node.op == "Identity":
        return _least_values(graph, node.inputs[0], steps - 1)
    if node.op == "Range":
        return _range_values(graph, node)
    sizes = _constant(graph, node.inputs[_SIZE_INPUT[node.op]])
    if node.op in _PADDING:
        # The values before and after those of each axis, of which an axis may have none.
        sizes = [max(1, sum(pair)) for pair in zip(sizes[::2], sizes[1::2], strict=False)]
    count = math.prod(1 if size < 0 else size for size in sizes)
    if node.op in _REPEATING:
        count *= _least_values(graph, node.inputs[0], steps - 1)
    return count


def _range_values(graph: dict[str, _Node], node: _Node) -> int:
    """Returns the number of values of a `Range` of integers; 1 if it is not constant."""
    numbers = [value for name in node.inputs[:3] for value in _constant(graph, name)]
    if len(numbers) != 3 or not numbers[2]:
        return 1
    start, limit, step = numbers
    return max(0, -((start - limit) // step))


def _constant(graph: dict[str, _Node], name: str) -> list[int]:
    """Returns the integers of a constant, or an empty list for another node or other values."""
    for _ in range(_MAX_STEPS):
        node = graph.get(name)
        if node is None:
            break
        if node.op == "Const":
            return _integers(_attribute(node, "value").only(8))
        if node.op != "Identity":
            break
        name = node.inputs[0]
    return []


def _integers(tensor: Message) -> list[int]:
    """Returns the values of a `TensorProto` of integers."""
    count = num_values(tensor.only(2))
    if count > MAX_AXES:
        raise ValueError("a shape of too many axes")
    fields = tensor.last()
    if fields.get(1, 0) not in _INTEGERS:
        return []
    layout, bits, field = _INTEGERS[fields[1]]
    if 4 in fields and fields[4].num_bytes:
        return fields[4].content().cast(layout).tolist()
    values: list[int] = []
    for value in tensor.values(field):
        values += [value] if isinstance(value, int) else value.numbers()
    # The wire format has no signs, and other readers drop further bits.
    values = [value & (1 << bits) - 1 for value in values[:count]]
    values = [value - (1 << bits) if value >> bits - 1 else value for value in values]
    # The last value fills the rest of the tensor.
    return values + (values[-1:] or [0]) * (count - len(values))
