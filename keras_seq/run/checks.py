"""Checks if a path is a run, or if a new run can be created at the path. Changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

from keras_seq.operating_system import refusal_to_write
from keras_seq.run.layout import ANY_MARK, WORK
from keras_seq.storage import LOCK, TEMPORARY, check_tree, open_regular, reason
from keras_seq.text import InputError

# Longer than the first line of settings.toml.
_MARK_BYTES = 100
_WORK_PREFIXES = ("vocabulary-", "ids-", TEMPORARY)


def check_new(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Checks that a new run can be created at a path. Changes nothing.

    Raises InputError if `path` is a file, a directory with other files, or a run that may not be
    overwritten, or if it cannot be written.
    """
    path = Path(path)
    try:
        if not path.exists():
            if path.is_symlink():
                raise InputError(f"{path}: a broken link, expected a new or empty directory")
            _check_writable(next(p for p in path.absolute().parents if p.exists()), path)
            return
        if not path.is_dir():
            raise InputError(f"{path}: a file, expected a new or empty directory")
        if not all(map(_is_left_over, path.iterdir())):
            if not is_run(path):
                raise InputError(f"{path}: not empty and not a run: expected a new directory")
            if not overwrite:
                raise InputError(f"{path}: has a run already: name another, or use --overwrite")
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    _check_writable(path, path)


def check_is_run(path: Path) -> None:
    """Raises InputError if there is no run at a path; names the program that runs an export."""
    if not path.exists():
        raise InputError(f"{path}: no such run directory")
    if not path.is_dir():
        way = f": use python -m keras_seq.litert {path}" if path.suffix == ".tflite" else ""
        raise InputError(f"{path}: a file, expected a run directory{way}")
    file = path / "settings.toml"
    if not file.exists() and not file.is_symlink():
        # The files of an ONNX export.
        is_export = all((path / name).is_file() for name in ("model.json", "runtime.py"))
        way = f": use python {path}/runtime.py" if is_export else ""
        raise InputError(f"{path}: not a run directory of keras-seq: it has no settings.toml{way}")


def _check_writable(directory: Path, path: Path) -> None:
    if not directory.is_dir():
        raise InputError(f"{path}: cannot be created: {directory} is a file")
    if (refusal := refusal_to_write(directory)) is not None:
        raise InputError(f"{path}: cannot be written: {refusal}")


def is_run(path: str | os.PathLike[str]) -> bool:
    """Returns True if a directory is a run of any format, with or without checkpoints.

    Raises InputError if its settings cannot be read: a run on a failing disk is still a run.
    """
    file = Path(path) / "settings.toml"
    try:
        if not file.is_file():
            return False
        with open_regular(file) as stream:
            return ANY_MARK.match(stream.read(_MARK_BYTES).decode("ascii", "replace")) is not None
    except OSError as error:
        raise InputError(f"{file}: {reason(error)}") from None


def _is_left_over(entry: Path) -> bool:
    """Returns True if a process that was killed while creating a run left the entry behind."""
    try:
        # Leftovers contain only regular files and directories, never links.
        check_tree(entry, limit=None)
    except InputError:
        return False
    if entry.name == WORK:
        return entry.is_dir() and all(name.startswith(_WORK_PREFIXES) for name in os.listdir(entry))
    is_name = entry.name == LOCK or entry.name.startswith(f"{TEMPORARY}settings.toml-")
    return is_name and entry.is_file()
