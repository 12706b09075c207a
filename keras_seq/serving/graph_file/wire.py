"""Protocol buffers read without their library: enough to walk through the file of a SavedModel.

The encoding: https://protobuf.dev/programming-guides/encoding. The field numbers:
tensorflow/core/protobuf/saved_model.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_seq.storage import read_file
from keras_seq.text import InputError

FILE = "saved_model.pb"
# The graph of an export has a megabyte or two; its weights are in other files.
_MAX_BYTES = 1 << 28
# What walking through a damaged message raises.
DAMAGE = (ValueError, IndexError, KeyError, TypeError, AttributeError)


def meta_graphs(version: Path) -> list[memoryview]:
    """The `MetaGraphDef` messages of a SavedModel, not parsed yet.

    Args:
        version: The directory that contains `saved_model.pb`.

    Raises:
        InputError: The file is missing, damaged, too large, or not a regular file.
    """
    content = memoryview(read_file(version / FILE, _MAX_BYTES))
    try:
        return list(values(content, 2))
    except DAMAGE:
        raise damaged(version) from None


def damaged(version: Path) -> InputError:
    """The error for a file that is not a SavedModel."""
    return InputError(f"{version / FILE}: damaged: not the graph of a SavedModel")


def entries(message: memoryview, number: int) -> Iterator[tuple[str, memoryview]]:
    """The entries of a map: each is a message of a key and a value."""
    for entry in values(message, number):
        fields = dict(fields_of(entry))
        yield text(fields[1]), fields.get(2, memoryview(b""))


def text(value: Any) -> str:
    """A field of text; TypeError if it is a number."""
    if isinstance(value, int):
        raise TypeError("a number, expected text")
    return bytes(value).decode()


def values(message: Any, number: int) -> Iterator[Any]:
    """The values of one field, in their order."""
    return (value for found, value in fields_of(message) if found == number)


def fields_of(message: Any) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number, and an integer or bytes."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        number, kind = divmod(tag, 8)
        # Other readers drop the bits above 32, and would see another field.
        if number == 0 or tag >= 1 << 32:
            raise ValueError("no field has this number")
        if kind == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        length, at = _varint(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        if at + length > end:
            raise ValueError("cut short")
        content = message[at : at + length]
        # A number where text is expected is ignored by TensorFlow: it must not pass for text here.
        yield number, content if kind == 2 else int.from_bytes(content, "little")
        at += length


def _varint(message: Any, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number without end")
