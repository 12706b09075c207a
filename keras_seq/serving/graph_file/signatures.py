"""Signatures of a SavedModel: its inputs and outputs, read from its file without TensorFlow.

They are known within milliseconds, so a wrong file is reported before a library of 300 MB is
loaded. Field numbers: tensorflow/core/protobuf/meta_graph.proto.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from keras_seq.serving.graph_file.wire import (
    DAMAGE,
    damaged,
    entries,
    fields_of,
    meta_graphs,
    text,
    values,
)

_TYPES = {1: "float", 3: "int32", 7: "string", 10: "bool"}


class End(NamedTuple):
    """An input or output of a signature.

    Attributes:
        name: Of the tensor in the graph, such as `"StatefulPartitionedCall:1"`.
        dtype: `"string"`, `"float"`, `"bool"`, `"int32"`, or `"other"`.
        shape: A number for each axis, -1 where any will do.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]


class Signature(NamedTuple):
    """A function of a model: its inputs and outputs by name."""

    inputs: dict[str, End]
    outputs: dict[str, End]


def read_signatures(version: Path) -> dict[str, Signature]:
    """The signatures of a SavedModel, by name.

    Args:
        version: The directory that holds `saved_model.pb`.

    Raises:
        InputError: There is no such file, or it is no SavedModel.
    """
    graphs = meta_graphs(version)
    try:
        return {
            name: Signature(_ends(definition, 1), _ends(definition, 2))
            for graph in graphs
            for name, definition in entries(graph, 5)
        }
    except DAMAGE:
        raise damaged(version) from None


def _ends(definition: memoryview, number: int) -> dict[str, End]:
    found = {}
    for name, info in entries(definition, number):
        fields = dict(fields_of(info))
        shape = [dict(fields_of(axis)).get(1, 0) for axis in values(fields.get(3, b""), 2)]
        found[name] = End(
            text(fields.get(1, b"")),
            _TYPES.get(fields.get(2, 0), "other"),
            # Negative numbers are written as the unsigned ones of the same 64 bits.
            tuple(size if size < 1 << 63 else size - (1 << 64) for size in shape),
        )
    return found
