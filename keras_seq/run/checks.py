"""Whether a run can be made in a directory, or is there already; changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

from keras_seq.settings import MAX_FILE_BYTES
from keras_seq.storage import LOCK, TEMPORARY, check_tree, read_file, reason
from keras_seq.text import InputError

# The first line of settings.toml tells a run from any directory with such a file.
MARK = "# keras-seq run directory, format 1\n"
# What `keras-seq prepare` has done so far.
WORK = ".work"
_WORK_PREFIXES = ("vocabulary-", "ids-", TEMPORARY)


def check_new(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Refuses a path where no new run can be made; changes nothing.

    Raises:
        InputError: A file, or a directory that is not empty and is not a run
            that may be overwritten.
    """
    path = Path(path)
    try:
        if not path.exists():
            if path.is_symlink():
                raise InputError(f"{path}: a link that leads nowhere")
            _check_writable(next(p for p in path.absolute().parents if p.exists()), path)
            return
        if not path.is_dir():
            raise InputError(f"{path}: a file, expected a new or empty directory")
        if not is_empty(path):
            if not is_run(path):
                raise InputError(f"{path}: not empty and not a run: expected a new directory")
            if not overwrite:
                raise InputError(f"{path}: has a run already: name another, or use --overwrite")
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    _check_writable(path, path)


def _check_writable(directory: Path, path: Path) -> None:
    if not directory.is_dir():
        raise InputError(f"{path}: cannot be made: {directory} is a file")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written: permission denied")


def is_run(path: Path) -> bool:
    """Whether a directory is a run of this package, maybe one without a checkpoint."""
    try:
        return read_file(path / "settings.toml", MAX_FILE_BYTES).startswith(MARK.encode())
    except InputError:
        return False


def is_empty(path: Path) -> bool:
    """True for a directory that contains at most what a process killed at its start left."""
    return all(map(_is_left_over, path.iterdir()))


def _is_left_over(entry: Path) -> bool:
    try:
        # Links are nobody's leftovers: what they lead to is somebody else's.
        check_tree(entry, limit=None)
    except InputError:
        return False
    if entry.name == WORK:
        return entry.is_dir() and all(name.startswith(_WORK_PREFIXES) for name in os.listdir(entry))
    is_name = entry.name == LOCK or entry.name.startswith(f"{TEMPORARY}settings.toml-")
    return is_name and entry.is_file()
