"""Error messages for wrong settings: one line with the key and the expected value."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal

# Bounds of pydantic fields.
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
_KINDS = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    list[float]: "a list of numbers",
}


class SettingsError(ValueError):
    """Raised if a setting does not exist or has a wrong value. The message has one line."""


def suggest(received: str, known: Iterable[str]) -> str:
    """Returns ` - did you mean X?` with the nearest known name, or ""."""
    known = list(known)
    last_names = {key.rsplit(".", 1)[-1]: key for key in reversed(known)}
    last = received.rsplit(".", 1)[-1]
    if last in last_names:
        return f" - did you mean {last_names[last]}?"
    near = difflib.get_close_matches(received, known, n=1, cutoff=0.6)
    if not near and len(received) > 2:
        near = [name for name in known if received in name]
    if not near:
        near = [
            last_names[name]
            for name in difflib.get_close_matches(last, list(last_names), n=1, cutoff=0.7)
        ]
    return f" - did you mean {near[0]}?" if near else ""


def expectation(field: Any) -> str:
    """Describes type and bounds of a pydantic field."""
    kinds = value_types(field.annotation)
    if list[str] in kinds:
        return "text or a list of texts"
    kind = kinds[0]
    if typing.get_origin(kind) is Literal:
        return choices(typing.get_args(kind))
    bounds = [
        f"{words} {value:,}" if isinstance(value, int) else f"{words} {value:,g}"
        for bound in field.metadata
        for name, words in _BOUNDS.items()
        if (value := getattr(bound, name, None)) is not None
    ]
    text = _KINDS.get(kind, "another value")
    return f"{text}, {' and '.join(bounds)}" if bounds and kind in (int, float) else text


def value_types(annotation: Any) -> tuple[Any, ...]:
    """Returns the types of an annotation, without None."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(part for part in typing.get_args(annotation) if part is not type(None))
    return (annotation,)


def choices(names: Iterable[str]) -> str:
    """Returns quoted names, joined by commas and `or`."""
    *others, last = (repr(name) for name in names)
    return f"{', '.join(others)} or {last}" if others else last


def show(value: Any) -> str:
    """Describes a received value, which may be very long or deeply nested, in few characters."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
