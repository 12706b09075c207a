"""A minimal reader of protocol buffers (https://protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_seq.storage import read_file
from keras_seq.text import InputError

FILE = "saved_model.pb"
# The graph of an export takes a megabyte or two; its weights are in other files.
_MAX_BYTES = 1 << 28
# The exceptions that reading a damaged message raises.
DAMAGE = (ValueError, IndexError, KeyError, TypeError, AttributeError)


def meta_graphs(version: Path) -> list[memoryview]:
    """Returns the `MetaGraphDef` messages of a SavedModel, not parsed, or raises InputError.

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
    """Yields the keys and values of a map field, whose values are messages."""
    for entry in values(message, number):
        fields = dict(fields_of(entry))
        yield text(fields[1]), fields.get(2, memoryview(b""))


def text(value: Any) -> str:
    """Decodes a string field; raises TypeError for a number."""
    if isinstance(value, int):
        raise TypeError("a number, expected text")
    return bytes(value).decode()


def values(message: Any, number: int) -> Iterator[Any]:
    """Yields the values of one field in their order."""
    return (value for field, value in fields_of(message) if field == number)


def fields_of(message: Any) -> Iterator[tuple[int, Any]]:
    """Yields the number and the value, an integer or bytes, of each field of a message."""
    offset, end = 0, len(message)
    while offset < end:
        tag, offset = _varint(message, offset)
        number, wire_type = divmod(tag, 8)
        # Other readers drop the bits above 32, and would read another field number.
        if number == 0 or tag >= 1 << 32:
            raise ValueError("invalid field number")
        if wire_type == 0:
            value, offset = _varint(message, offset)
            yield number, value
            continue
        if wire_type == 2:
            length, offset = _varint(message, offset)
        else:
            length = {1: 8, 5: 4}[wire_type]
        if offset + length > end:
            raise ValueError("truncated message")
        content = message[offset : offset + length]
        # TensorFlow ignores a number in the place of text, so it must not be read as text here.
        yield number, content if wire_type == 2 else int.from_bytes(content, "little")
        offset += length


def _varint(message: Any, offset: int) -> tuple[int, int]:
    """Returns a variable-length integer and the offset after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, offset
    raise ValueError("unterminated number")
