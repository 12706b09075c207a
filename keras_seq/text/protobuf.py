"""Reads and writes the protobuf wire format, without the protobuf package."""

import struct
from collections.abc import Iterator
from typing import Any


# The generated classes of SentencePiece need one exact version of the protobuf package.
def read_fields(message: Any) -> Iterator[tuple[int, Any]]:
    """Yields `(field number, value)` of each field of an untrusted message.

    A value with a length is bytes (or a view of them, if the message is one); numbers of a fixed
    width are unsigned integers. Raises ValueError or IndexError if the bytes are not a message.
    """
    position = 0

    def varint() -> int:
        nonlocal position
        value = 0
        for shift in range(0, 70, 7):
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number of more than 64 bits")

    while position < len(message):
        tag = varint()
        number, wire_type = divmod(tag, 8)
        # Other readers drop the bits above 32, and would read another field number.
        if number == 0 or tag >= 1 << 32:
            raise ValueError("an invalid field number")
        if wire_type == 0:
            yield number, varint()
            continue
        if wire_type not in (1, 2, 5):
            raise ValueError(f"wire type {wire_type}")
        length = {1: 8, 5: 4}.get(wire_type) or varint()
        content = message[position : position + length]
        if len(content) < length:
            raise ValueError("a field that is longer than the message")
        # Other readers ignore a number instead of text, so it must not be bytes here.
        yield number, content if wire_type == 2 else int.from_bytes(content, "little")
        position += length


def field(number: int, value: bool | int | float | str | bytes) -> bytes:
    """Encodes one field: a float with 32 bits, text as UTF-8.

    Example:

    >>> list(read_fields(field(3, 5) + field(1, "a")))
    [(3, 5), (1, b'a')]
    """
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(int(value))
    content = value.encode("utf-8") if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    if number < 0:
        # The wire format encodes a negative int32 with 64 bits.
        number += 1 << 64
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
