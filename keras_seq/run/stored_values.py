"""Reads JSON files of a run, and tests their values: the files may come from elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TypeGuard

from keras_seq.storage import read_json
from keras_seq.text import InputError

# The name of a checkpoint has at most 12 digits.
_MAX_COUNT = 10**12
_MAX_INTEGER = 2**64


def is_count(value: Any) -> TypeGuard[int]:
    """Tests if a value is a number of updates or bytes: an integer from 0 to 10^12."""
    return type(value) is int and 0 <= value <= _MAX_COUNT


def is_number(value: Any) -> bool:
    """Tests if a value is a finite number of double precision; JSON in Python knows others."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def is_text(value: Any) -> bool:
    """Tests if a value is text that can be written to a file: without single surrogates."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_optional_json(path: Path, limit: int) -> dict[str, Any] | None:
    """Reads a JSON object of at most `limit` bytes; None if there is no such file."""
    if not path.exists() and not path.is_symlink():
        return None
    return read_json(path, limit)


def read_values(path: Path, limit: int) -> dict[str, Any] | None:
    """Reads a JSON object whose values can be shown and written again; None without a file.

    Raises InputError for integers of more than 64 bits, and for text that is not valid Unicode.
    """
    values = read_optional_json(path, limit)
    pending: list[Any] = [values]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, int) and abs(value) > _MAX_INTEGER:
            raise InputError(f"{path}: an integer of more than 64 bits, expected smaller ones")
        elif isinstance(value, str) and not is_text(value):
            raise InputError(f"{path}: text that is not valid Unicode: {ascii(value[:80])}")
    return values
