"""Reads the signatures of a SavedModel in milliseconds, without importing TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from keras_seq.serving.graph_file import wire
from keras_seq.text.protobuf import read_fields

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
    graphs = wire.meta_graphs(version)
    try:
        return {
            name: Signature(_tensors(definition, 1), _tensors(definition, 2))
            for graph in graphs
            for name, definition in wire.entries(graph, 5)
        }
    except wire.DAMAGE:
        raise wire.damaged(version) from None


def _tensors(definition: memoryview, number: int) -> dict[str, TensorInfo]:
    tensors = {}
    for name, info in wire.entries(definition, number):
        fields = dict(read_fields(info))
        dtype, shape = dtype_name(fields.get(2, 0)), _shape(fields.get(3, b""))
        tensors[name] = TensorInfo(dtype, shape, wire.text(fields.get(1, b"")))
    return tensors


def _shape(message: Any) -> tuple[int | None, ...] | None:
    if any(wire.values(message, 3)):
        return None
    sizes = [dict(read_fields(axis)).get(1, 0) for axis in wire.values(message, 2)]
    # An unknown size is -1, which protobuf stores as a large unsigned 64-bit integer.
    return tuple(size if size < 1 << 63 else None for size in sizes)
