"""Reads settings from TOML files and from text, in bounded time."""

from __future__ import annotations

import tomllib
import typing
from typing import Any

from keras_seq.settings.errors import SettingsError, value_types

# A complete settings file has 3 kB. The limits protect from hostile files: the time of tomllib
# grows with the square of the number of dots in a key.
MAX_FILE_BYTES = 256 * 1024
MAX_LINE_DOTS = 64


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Parses a settings file. Raises SettingsError, prefixed by `where`, if it is invalid."""
    if len(text) > MAX_FILE_BYTES:
        raise SettingsError(f"{where}larger than {MAX_FILE_BYTES} bytes, not a settings file")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_LINE_DOTS:
            raise SettingsError(f"{where}line {number}: too many dots for a setting")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SettingsError(f"{where}nested too deeply, settings have two levels") from None
    except ValueError as error:
        raise SettingsError(f"{where}not valid TOML: {error}") from None


def read_value(text: str, field: Any) -> Any:
    """Parses the value of a setting on a command line according to the type of its field."""
    kinds = value_types(field.annotation)
    if list[str] in kinds and (names := _read_names(text)):
        return names
    if str in kinds:
        return None if text == "none" else text
    # The text may be one of the allowed names.
    if any(text in typing.get_args(kind) for kind in kinds):
        return text
    stripped = text.strip()
    if stripped.lower() == "none":
        return None
    if "\n" in stripped or stripped.count(".") > MAX_LINE_DOTS:
        return text
    try:
        return tomllib.loads(f"value = {stripped}")["value"]
    except (ValueError, RecursionError):
        return stripped


def _read_names(text: str) -> list[str] | None:
    """Returns the names in a TOML list; None if the text is not such a list."""
    if not text.startswith("[") or "\n" in text or text.count(".") > MAX_LINE_DOTS:
        return None
    try:
        names = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return None
    return names if all(isinstance(name, str) for name in names) else None
