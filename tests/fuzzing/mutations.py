"""Strategies of Hypothesis that damage valid files: bytes, JSON, TOML and protobuf messages."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st

from keras_seq.text.protobuf import field, read_fields

TEXTS = ["", "\x00", "../x", "/dev/zero", "\x1b[2J", "\u2028", "a" * 5000, "none", "[]", "é漢😀"]
NUMBERS = [0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, 1e-320]
BYTES = [
    b"\x00",
    b"\xff" * 10,
    b"\n",
    b"\t",
    b'"',
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\x80" * 10,
    b"[" * 99,
]

plain_values = st.one_of(
    st.sampled_from([None, True, False, *NUMBERS, *TEXTS]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
# TOML and the settings have no numbers like these.
json_numbers = st.sampled_from([float("inf"), float("-inf"), float("nan"), 10**400])
json_values = st.recursive(
    st.one_of(plain_values, plain_values, json_numbers),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def damaged_bytes(draw: Any, content: bytes) -> bytes:
    """Draws a copy of a file in which up to four parts are cut out, repeated or replaced."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = start + draw(st.sampled_from([0, 1, 2, 4, 8, 100, len(content)]))
        new = draw(
            st.one_of(
                st.binary(max_size=8), st.sampled_from(BYTES), st.just(content[start:end] * 2)
            )
        )
        content = content[:start] + new + content[end:]
    return content


@st.composite
def damaged_json(draw: Any, value: Any) -> Any:
    """Draws a copy of a JSON value with up to three parts replaced, removed or renamed."""
    for _ in range(draw(st.integers(1, 3))):
        value = copy.deepcopy(value)
        places = [*_places(value)]
        if not places:
            return draw(json_values)
        holder, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(["replace", "replace", "remove", "rename"]))
        if change == "replace":
            holder[key] = draw(json_values)
        elif change == "remove":
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from([*TEXTS, *map(str, holder)]))] = holder.pop(key)
        else:
            holder.insert(key, holder[key])
    return value


def json_files(value: Any) -> st.SearchStrategy[bytes]:
    """Returns damaged JSON files: with another content, or with other bytes."""
    return st.one_of(damaged_json(value).map(_dumped), damaged_bytes(json.dumps(value).encode()))


@st.composite
def damaged_message(draw: Any, message: bytes, depth: int = 0) -> bytes:
    """Draws a protobuf message with one or two fields repeated, removed, renumbered or damaged."""
    fields = [
        (number, bytes(value) if isinstance(value, memoryview) else value)
        for number, value in read_fields(message)
    ]
    if not fields:
        return draw(st.binary(max_size=20))
    for _ in range(draw(st.integers(1, 2))):
        if not fields:
            break
        index = draw(st.integers(0, len(fields) - 1))
        number, value = fields[index]
        change = draw(st.sampled_from(["value", "value", "value", "remove", "repeat", "number"]))
        if change == "remove":
            del fields[index]
        elif change == "repeat":
            fields.insert(index, fields[index])
        elif change == "number":
            fields[index] = (draw(st.integers(1, 50)), value)
        elif isinstance(value, int):
            fields[index] = (number, draw(st.integers(0, 2**64 - 1)))
        elif depth < 8 and value and _is_message(value):
            fields[index] = (number, draw(damaged_message(value, depth + 1)))
        else:
            fields[index] = (number, draw(damaged_bytes(value)))
    return b"".join(field(*item) for item in fields)


def message_files(message: bytes) -> st.SearchStrategy[bytes]:
    """Returns damaged files with a protobuf message."""
    return st.one_of(damaged_message(message), damaged_bytes(message))


@st.composite
def settings_files(draw: Any, keys: list[str]) -> bytes:
    """Draws a TOML file with up to five settings, most of them with impossible values."""
    lines = []
    for key in draw(st.lists(st.sampled_from(keys), max_size=5)):
        value = draw(st.one_of(plain_values, st.lists(plain_values, max_size=3)))
        lines.append(f"{key} = {_toml(value)}")
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    return draw(damaged_bytes(content)) if draw(st.booleans()) else content


def _toml(value: Any) -> str:
    # Numbers and lists of both formats look alike, and texts nearly so.
    return "nan" if value is None else json.dumps(value)


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each dict or list in a JSON value, with each of its keys."""
    if isinstance(value, dict):
        items = [*value.items()]
    elif isinstance(value, list):
        items = [*enumerate(value)]
    else:
        return
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def _is_message(content: bytes) -> bool:
    try:
        return bool([*read_fields(content)])
    except (ValueError, IndexError):
        return False
