"""The inputs of a job, stored as JSON next to its results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_seq.storage import read_file
from keras_seq.text import InputError

_MAX_BYTES = 1 << 20
_SHOWN = 4


def read_record(path: Path) -> dict[str, Any] | None:
    """Reads a JSON object, or raises InputError; None if the file is missing."""
    if not path.exists():
        return None
    content = read_file(path, _MAX_BYTES)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError(f"{path}: not the record of a job: delete it, or use --overwrite")
    return value


def check_same_job(stored: Mapping[str, Any], requested: Mapping[str, Any], where: Path) -> None:
    """Raises InputError if the directory `where` has results of a job with other inputs."""
    differences = [
        f"{key} {_show(stored.get(key))} -> {_show(requested.get(key))}"
        for key in {**stored, **requested}
        if stored.get(key) != requested.get(key)
    ]
    if differences:
        more = len(differences) - _SHOWN
        raise InputError(
            f"{where}: started with different settings: {'; '.join(differences[:_SHOWN])}"
            f"{f' and {more} more' if more > 0 else ''}: use the same settings, name another "
            "directory, or start again with --overwrite"
        )


def _show(value: Any) -> str:
    if isinstance(value, str) and value.startswith("sha256:"):
        return value[: len("sha256:") + 8]
    return "none" if value is None else str(value)
