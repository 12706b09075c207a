"""Parser for protobuf messages (https://protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_seq.storage import read_file
from keras_seq.text import InputError
from keras_seq.text.protobuf import read_fields

FILE = "saved_model.pb"
# Maximum bytes of a graph file. Exported graphs take 1 to 2 MB; the weights are in other files.
_MAX_BYTES = 1 << 28
# Exceptions that the parser may raise for a damaged message.
DAMAGE = (ValueError, IndexError, KeyError, TypeError, AttributeError)


def meta_graphs(version: Path) -> list[memoryview]:
    """Returns the serialized `MetaGraphDef` messages of a SavedModel, or raises InputError.

    The field numbers are those of tensorflow/core/protobuf/saved_model.proto.
    """
    content = memoryview(read_file(version / FILE, _MAX_BYTES))
    try:
        return list(values(content, 2))
    except DAMAGE:
        raise damaged(version) from None


def damaged(version: Path) -> InputError:
    """Returns the error for a file that is not a SavedModel."""
    return InputError(f"{version / FILE}: damaged: not the graph of a SavedModel")


def entries(message: memoryview, number: int) -> Iterator[tuple[str, memoryview]]:
    """Yields the keys and values of a field that maps strings to messages."""
    for entry in values(message, number):
        fields = dict(read_fields(entry))
        yield text(fields[1]), fields.get(2, memoryview(b""))


def text(value: Any) -> str:
    """Decodes a string field, or raises TypeError if the field is a number."""
    if isinstance(value, int):
        raise TypeError("a number, expected text")
    return bytes(value).decode()


def values(message: Any, number: int) -> Iterator[Any]:
    """Yields the values of the field `number` in the order of the message."""
    return (value for field, value in read_fields(message) if field == number)
