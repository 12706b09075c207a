"""What a job was made with, as JSON beside its results."""

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
    """A JSON object from a file, None if there is no such file.

    Raises:
        InputError: Something else is in it.
    """
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


def check_same_job(noted: Mapping[str, Any], now: Mapping[str, Any], where: Path) -> None:
    """Refuses to mix the results of two jobs.

    Args:
        noted: What a job was begun with.
        now: What is asked for.
        where: Its directory.

    Raises:
        InputError: With each difference.
    """
    differences = [
        f"{key} {_show(noted.get(key))} -> {_show(now.get(key))}"
        for key in {**noted, **now}
        if noted.get(key) != now.get(key)
    ]
    if differences:
        more = len(differences) - _SHOWN
        raise InputError(
            f"{where}: begun otherwise: {'; '.join(differences[:_SHOWN])}"
            f"{f' and {more} more' if more > 0 else ''}: give what it was begun with, name "
            "another directory, or begin again with --overwrite"
        )


def _show(value: Any) -> str:
    if isinstance(value, str) and value.startswith("sha256:"):
        return value[: len("sha256:") + 8]
    return "none" if value is None else str(value)
