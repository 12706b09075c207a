"""The directory of a model's versions, as TensorFlow Serving reads it."""

from __future__ import annotations

import re
from pathlib import Path

from keras_seq.storage import reason
from keras_seq.text import InputError

# Such a file is in every version; a directory without is none, or is still being copied.
_GRAPHS = ("saved_model.pb", "saved_model.pbtxt")
_NUMBER = re.compile(r"[0-9]{1,18}")


def find_versions(base: Path) -> dict[int, Path]:
    """The versions in a directory, newest first.

    A version is a directory whose name is an integer. Whatever else is there,
    such as the `.tmp-*` of an export at work, is none.

    Raises:
        InputError: `base` cannot be read.
    """
    try:
        found = {
            int(path.name): path
            for path in base.iterdir()
            if _NUMBER.fullmatch(path.name) and path.is_dir()
        }
    except OSError as error:
        raise InputError(f"{base}: {reason(error)}") from None
    return dict(sorted(found.items(), reverse=True))


def check_version(path: Path) -> None:
    """Looks whether a directory can be a SavedModel, without TensorFlow."""
    try:
        found = any((path / name).is_file() for name in _GRAPHS)
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    if not found:
        raise InputError(f"{path}: not a SavedModel: it has no {_GRAPHS[0]}")


def newest_version(base: Path) -> tuple[int, Path]:
    """The version to serve at the start.

    Raises:
        InputError: There is none, and how to make one.
    """
    if not base.exists():
        raise InputError(f"{base}: no such directory; keras-seq export makes one")
    if not base.is_dir():
        raise InputError(f"{base}: not a directory of versions but a file")
    for number, path in find_versions(base).items():
        check_version(path)
        return number, path
    if any((base / name).is_file() for name in _GRAPHS):
        raise InputError(f"{base}: this is one version; name the directory above it")
    raise InputError(
        f"{base}: no version there: expected directories named 1, 2, ... as keras-seq export makes"
    )


def fingerprint(path: Path) -> tuple[tuple[int, int, int], ...]:
    """Changes when the files of a version change: what failed once may be whole by now."""
    stamps = []
    for inside in (path, *(path / name for name in _GRAPHS), path / "variables"):
        try:
            status = inside.stat()
        except OSError:
            continue
        stamps.append((status.st_ino, status.st_mtime_ns, status.st_size))
    variables = path / "variables"
    try:
        for inside in sorted(variables.iterdir()):
            status = inside.stat()
            stamps.append((status.st_ino, status.st_mtime_ns, status.st_size))
    except OSError:
        pass
    return tuple(stamps)
