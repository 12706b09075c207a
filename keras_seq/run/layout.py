"""The files of a run directory: their names, checks, lock and deletion."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from keras_seq.storage import (
    LOCK,
    TEMPORARY,
    DirectoryLock,
    check_tree,
    reason,
    remove,
    remove_temporaries,
)
from keras_seq.storage.limits import MAX_ENTRIES
from keras_seq.text import InputError

# The first line of settings.toml marks a directory as a run.
_FORMAT = 1
MARK = f"# keras-seq run directory, format {_FORMAT}\n"
ANY_MARK = re.compile(r"# keras-seq run directory, format (\d{1,9})\r?\n")
# Intermediate results of `keras-seq prepare`.
WORK = ".work"
# Files are deleted in this order: if interrupted, the run has no checkpoint and is not prepared.
# settings.toml comes last, so that the directory remains recognizable as a run.
_FILES = (
    *("checkpoints", "data", "tokenizer", "result.json", "metrics.jsonl", "samples.txt"),
    *(
        "tensorboard",
        "README.md",
        "evaluations.json",
        "report.html",
        "log.csv",
        "corpus",
        "settings.toml",
    ),
)


def lock_directory(path: str | os.PathLike[str]) -> DirectoryLock:
    """Creates a directory if it is missing, and takes its lock; see `DirectoryLock`."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be created: {reason(error)}") from None
    return DirectoryLock(path)


def check_format(path: Path, what: str, number: Any, known: int) -> None:
    """Raises InputError unless the format of a file is an integer from 1 to `known`."""
    # True is an integer, too.
    is_integer = type(number) is int
    if is_integer and 1 <= number <= known:
        return
    if is_integer and number > known:
        shown = str(number)[:20]
        advice = "upgrade keras-seq: python -m pip install --upgrade keras-seq"
    else:
        shown, advice = repr(number)[:20], "the file is damaged: copy it again"
    raise InputError(f"{path}: format {shown} of {what}, expected {known}: {advice}")


def check_mark(path: Path, settings: str) -> None:
    """Raises InputError if the first line of `settings`, read from `path`, has another format."""
    if found := ANY_MARK.match(settings):
        check_format(path, "a run directory", int(found[1]), _FORMAT)


def check_run_files(path: Path) -> None:
    """Refuses links, pipes and devices among the files of a run. Other files are not read."""
    for name in os.listdir(path):
        if name in (*_FILES, LOCK, WORK) or name.startswith(TEMPORARY):
            check_tree(path / name, limit=None if name == WORK else MAX_ENTRIES)


def remove_run_files(path: Path, *, keep: tuple[str, ...] = ()) -> None:
    """Deletes the files of a run, except those in `keep`. Other files stay."""
    for name in _FILES:
        if name not in keep:
            remove(path / name)


def remove_run_temporaries(path: Path) -> None:
    """Deletes temporary files of a run that a killed process left."""
    # Users may keep temporary files of their own in the directory.
    remove_temporaries(path, (*_FILES, "probe"))
    for name in ("data", "tokenizer"):
        remove_temporaries(path / name)
