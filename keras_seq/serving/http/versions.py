"""Finds the versions of a model in a directory with the layout of TensorFlow Serving."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

from keras_seq.storage import read_json, reason
from keras_seq.storage.limits import MAX_RECORD_BYTES
from keras_seq.text import InputError

# File in an export that records the checkpoints of the exported weights.
RECORD_NAME = "checkpoint.json"
# Names of the graph file. A version without a graph file may be incomplete.
_GRAPHS = ("saved_model.pb", "saved_model.pbtxt")
_NUMBER = re.compile(r"[0-9]{1,18}")


def find_versions(base: Path) -> dict[int, Path]:
    """Returns the versions in a directory, newest first.

    A version is a directory whose name is an integer. Everything else is ignored, such as the
    `.tmp-*` of a running export.
    """
    try:
        versions = {
            int(path.name): path
            for path in base.iterdir()
            if _NUMBER.fullmatch(path.name) and path.is_dir()
        }
    except OSError as error:
        raise InputError(f"{base}: {reason(error)}") from None
    return dict(sorted(versions.items(), reverse=True))


def check_version(path: Path) -> None:
    """Raises InputError if a directory contains no graph file. Does not import TensorFlow."""
    try:
        is_model = any((path / name).is_file() for name in _GRAPHS)
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    if not is_model:
        raise InputError(f"{path}: not a SavedModel: it has no {_GRAPHS[0]}")


def newest_version(base: Path) -> tuple[int, Path]:
    """Returns the number and directory of the newest version, or raises InputError."""
    if not base.exists():
        raise InputError(f"{base}: no such directory; keras-seq export makes one")
    if not base.is_dir():
        raise InputError(f"{base}: not a directory of versions but a file")
    for number, path in find_versions(base).items():
        check_version(path)
        return number, path
    if any((base / name).is_file() for name in _GRAPHS):
        raise InputError(f"{base}: this is one version; name the directory above it")
    # The name of `keras_seq.runtime.MODEL_FILE`.
    if (base / "model.json").is_file():
        raise InputError(
            f"{base}: an ONNX export, expected the versions of a SavedModel: serve it with python "
            f"{base}/runtime.py --port 8501"
        )
    raise InputError(
        f"{base}: no version there: expected directories named 1, 2, ... as keras-seq export makes"
    )


def read_record(path: Path) -> dict[str, Any]:
    """Returns the record of an export; empty if the file is missing or damaged."""
    try:
        return read_json(path / RECORD_NAME, MAX_RECORD_BYTES)
    except InputError:
        return {}


def recorded_languages(path: str | os.PathLike[str]) -> list[str]:
    """Returns the target languages in the record of an export; empty if there are none."""
    names = read_record(Path(path)).get("languages")
    valid = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return list(names or ()) if valid else []


def fingerprint(path: Path) -> tuple[tuple[int, int, int], ...]:
    """Returns a value that changes when the files of a version change.

    `ModelWatcher` uses this value to retry a version that failed to load.
    """
    stamps = []
    variables = path / "variables"
    files = [path, *(path / name for name in _GRAPHS), variables]
    with contextlib.suppress(OSError):
        files += sorted(variables.iterdir())
    for file in files:
        with contextlib.suppress(OSError):
            status = file.stat()
            stamps.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(stamps)
