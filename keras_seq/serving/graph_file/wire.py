"""Parser for protobuf messages (https://protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_seq.storage import read_file
from keras_seq.text import InputError
from keras_seq.text.protobuf import read_fields

FILE = "saved_model.pb"
# Maximum bytes of a graph file. Exported graphs take 1 to 2 MB, besides their vocabularies, of
# which each may take 64 MB. The weights are in other files.
_MAX_BYTES = 1 << 28
# Maximum number of fields that are read from a graph file. Exported graphs have up to 200,000. A
# field takes two bytes of the file, but up to a hundred in memory.
_MAX_FIELDS = 4_000_000
# Maximum nesting depth of functions in the attributes of functions.
_MAX_DEPTH = 8
# Exceptions that the parser may raise for a damaged message.
_DAMAGE = (ValueError, IndexError, KeyError, TypeError, AttributeError)


class _TooManyFieldsError(Exception):
    """A file has more fields than a graph needs."""


class _Budget:
    """The number of fields that may still be read from a file."""

    def __init__(self, fields: int) -> None:
        self._left = fields

    def spend(self) -> None:
        """Counts one field."""
        self._left -= 1
        if self._left < 0:
            raise _TooManyFieldsError


class Message:
    """A serialized message or text. The messages of a file share a budget of fields.

    Damaged messages raise ValueError, IndexError or AttributeError, as a number has no fields;
    `reading` turns these into InputError.
    """

    __slots__ = ("_budget", "_content")

    def __init__(self, content: memoryview, budget: _Budget) -> None:
        self._content = content
        self._budget = budget

    @property
    def num_bytes(self) -> int:
        """Size of the serialized message."""
        return len(self._content)

    def fields(self) -> Iterator[tuple[int, Any]]:
        """Yields `(field number, value)`. A value is a number or a `Message`."""
        for number, value in read_fields(self._content):
            self._budget.spend()
            yield number, value if isinstance(value, int) else Message(value, self._budget)

    def values(self, number: int) -> Iterator[Any]:
        """Yields the values of the field `number` in the order of the message."""
        return (value for field, value in self.fields() if field == number)

    def last(self) -> dict[int, Any]:
        """Returns the last value of each field."""
        return dict(self.fields())

    def only(self, number: int) -> Any:
        """Returns the value of the field `number`, or an empty message if it is missing.

        Raises ValueError for several values, because other readers merge them.
        """
        found = self.values(number)
        value = next(found, None)
        if next(found, None) is not None:
            raise ValueError("several values of one field")
        return Message(memoryview(b""), self._budget) if value is None else value

    def entries(self, number: int) -> Iterator[tuple[str, Message]]:
        """Yields the keys and values of a field that maps strings to messages."""
        for entry in self.values(number):
            key = entry.last()[1].text()
            yield key, entry.only(2)

    def content(self) -> memoryview:
        """Returns the serialized message, or the content of a field of bytes."""
        return self._content

    def numbers(self) -> list[int]:
        """Returns the unsigned integers of a packed field."""
        numbers, value, shift = [], 0, 0
        for byte in self._content:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                self._budget.spend()
                numbers.append(value)
                value = shift = 0
            elif shift >= 70:
                raise ValueError("a number of more than 64 bits")
        if shift:
            raise ValueError("a number without an end")
        return numbers

    def text(self) -> str:
        """Decodes the content as UTF-8."""
        return bytes(self._content).decode()


def meta_graph(version: Path) -> Message:
    """Returns the only `MetaGraphDef` of a SavedModel, or raises InputError.

    The field numbers are those of tensorflow/core/protobuf/saved_model.proto.
    """
    content = memoryview(read_file(version / FILE, _MAX_BYTES))
    with reading(version):
        graphs = Message(content, _Budget(_MAX_FIELDS)).values(2)
        graph: Message | None = next(graphs, None)
        if graph is None:
            raise ValueError("no graph")
        if next(graphs, None) is not None:
            # A damaged length may make several graphs of one, but then cuts a field of the first.
            for _ in graph.fields():
                pass
            raise InputError(f"{version / FILE}: contains several graphs, expected one")
        return graph


def attribute_values(attribute: Message, depth: int = 0) -> Iterator[Message]:
    """Yields the value of an attribute of a node, and those of nested functions.

    The field numbers are those of tensorflow/core/framework/attr_value.proto.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("functions nested too deep")
    value = attribute.only(2)
    yield value
    for function in attribute_functions(value):
        for inner in function.values(2):
            yield from attribute_values(inner, depth + 1)


def attribute_functions(value: Message) -> Iterator[Message]:
    """Yields the functions in the value of an attribute, without those nested in them."""
    yield from value.values(10)
    for items in value.values(1):
        yield from items.values(9)


def node_name(tensor: str) -> str:
    """Returns the name of the node in a tensor name, `node:0`, or in a control input, `^node`."""
    return tensor.removeprefix("^").split(":")[0]


@contextlib.contextmanager
def reading(version: Path) -> Iterator[None]:
    """Raises InputError if the graph file turns out to be damaged or too large."""
    try:
        yield
    except InputError:
        raise
    except _TooManyFieldsError:
        raise InputError(
            f"{version / FILE}: more than {_MAX_FIELDS:,} fields, which no graph needs"
        ) from None
    except _DAMAGE:
        raise InputError(f"{version / FILE}: damaged: not the graph of a SavedModel") from None
