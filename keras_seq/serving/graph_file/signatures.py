"""Reads the signatures of a SavedModel in milliseconds, without importing TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from keras_seq.serving.graph_file import wire
from keras_seq.serving.graph_file.wire import Message

# Type names by number in the enumeration `DataType` of tensorflow/core/framework/types.proto.
_DTYPES = dict(
    enumerate("FLOAT DOUBLE INT32 UINT8 INT16 INT8 STRING COMPLEX64 INT64 BOOL".split(), start=1)
)


class TensorInfo(NamedTuple):
    """An input or output of a signature.

    `dtype` is TensorFlow's name of the type, or `"DT_INVALID"` for a type that no export uses.
    `shape` is None if the rank is unknown, and contains None for each unknown size. `name` is the
    name of the tensor in the graph.
    """

    dtype: str
    shape: tuple[int | None, ...] | None
    name: str = ""


class Signature(NamedTuple):
    """Inputs and outputs, by name, of a function that clients of a SavedModel can call."""

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]


def dtype_name(number: int) -> str:
    """Returns the name of a `DataType`, or `"DT_INVALID"` for a type that no export uses."""
    return f"DT_{_DTYPES.get(number, 'INVALID')}"


def read_signatures(version: Path) -> dict[str, Signature]:
    """Returns the signatures of a SavedModel by name, or raises InputError for a damaged file.

    The field numbers are those of tensorflow/core/protobuf/meta_graph.proto.
    """
    graph = wire.meta_graph(version)
    with wire.reading(version):
        return {
            name: Signature(_tensors(definition, 1), _tensors(definition, 2))
            for name, definition in graph.entries(5)
        }


def _tensors(definition: Message, number: int) -> dict[str, TensorInfo]:
    tensors = {}
    for name, info in definition.entries(number):
        fields = info.last()
        shape = _shape(info.only(3))
        tensor = fields[1].text() if 1 in fields else ""
        tensors[name] = TensorInfo(dtype_name(fields.get(2, 0)), shape, tensor)
    return tensors


def _shape(message: Message) -> tuple[int | None, ...] | None:
    if any(message.values(3)):
        return None
    sizes = [axis.last().get(1, 0) for axis in message.values(2)]
    # An unknown size is -1, which protobuf stores as a large unsigned 64-bit integer.
    return tuple(size if size < 1 << 63 else None for size in sizes)
