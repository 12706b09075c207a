"""Atomic publication of exports: a rename makes the complete export visible in one step."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from keras_seq.operating_system import is_read_only, sync_directory
from keras_seq.run import Run, is_run
from keras_seq.storage import check_tree, reason, sync_parent, sync_tree, temporary_directory
from keras_seq.text import InputError

# Names that TensorFlow Serving accepts as versions: strings that strtoll parses completely.
_VERSION = re.compile(r"\s*[+-]?[0-9]+\s*")
_LARGEST_VERSION = 2**63 - 1
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR}
# TensorFlow's errors have no `errno`, but contain the system's message for these error numbers.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)


def check_base(base: Path) -> None:
    """Checks that versions can be published in a directory, without changing anything.

    The directory need not exist. Call this before an export that takes minutes.
    """
    base = Path(base)
    try:
        _check_path(base)
        if (base / "saved_model.pb").exists():
            raise InputError(
                f"{base}: a SavedModel itself, expected the directory above it, whose "
                "subdirectories 1, 2, ... are the versions"
            )
        # `write_guide` writes to this directory.
        check_tree(base / "serving")
        if is_run(base):
            raise InputError(f"{base}: a run directory, expected a directory for exports")
    except OSError as error:
        raise InputError(f"{base}: {reason(error)}") from None


def check_destination(destination: Path) -> None:
    """Checks that a new file or directory can be published, without changing anything."""
    destination = Path(destination)
    try:
        if os.path.lexists(destination):
            raise InputError(f"{destination}: exists already, name another")
        _check_path(destination)
    except OSError as error:
        raise InputError(f"{destination}: {reason(error)}") from None


def checkpoint_record(runs: Sequence[Run]) -> bytes:
    """Returns the content of `RECORD_NAME`, which lists the name and step of each run.

    For speech it also has the sampling rate, and for several target languages their names.
    """
    record: dict[str, Any] = {
        "runs": [{"name": run.path.resolve().name, "step": run.loaded_step} for run in runs]
    }
    if (rate := runs[0].settings.data.sample_rate) is not None:
        record["sample_rate"] = rate
    if languages := runs[0].languages:
        record["languages"] = languages
    return (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode()


def publish_version(base: Path, write: Callable[[Path], None]) -> Path:
    """Publishes a version under the largest existing number plus 1. Returns the new directory.

    `write` must fill an empty temporary directory. If `write` fails, the directory is removed. A
    model server polls `base` and loads each subdirectory whose name is an integer, so the version
    is written under a temporary name, flushed to the disk and then renamed.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         version = publish_version(
    ...             Path(folder), lambda path: (path / "model").touch())
    ...         print(version.name)
    1
    2
    """
    base = Path(base)
    with _workspace(base, base, "version") as temporary:
        write(temporary)
        sync_tree(temporary)
        final = base / str(_next_version(base))
        # The rename fails if another export has published this number in the meantime.
        while not _renamed(temporary, final):
            final = base / str(_next_version(base))
        sync_directory(base)
    return final


def publish_directory(destination: Path, write: Callable[[Path], None]) -> Path:
    """Publishes one new directory or file, and returns `destination`.

    `write` must create a directory or a file at the path that it receives. The path has the name of
    `destination`, but lies in a temporary directory.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     publish_directory(
    ...         Path(folder) / "model.txt", lambda path: path.write_text("whole")).read_text()
    'whole'
    """
    destination = Path(destination)
    check_destination(destination)
    parent = destination.parent
    with _workspace(parent, destination, destination.name) as temporary:
        written = temporary / destination.name
        write(written)
        sync_tree(written)
        if written.is_dir():
            is_taken = os.path.lexists(destination) or not _renamed(written, destination)
        else:
            is_taken = not _linked(written, destination)
        if is_taken:
            raise InputError(f"{destination}: exists already, name another")
        sync_parent(destination)
    return destination


@contextmanager
def _workspace(parent: Path, subject: Path, name: str) -> Iterator[Path]:
    """Creates a temporary directory in `parent`, and missing parents.

    If the block fails, the new parents are removed, and a disk error is raised as an InputError
    about `subject`.
    """
    created: list[Path] = []
    try:
        for directory in reversed([parent, *parent.parents]):
            if not directory.exists():
                directory.mkdir(exist_ok=True)
                created.append(directory)
        with temporary_directory(parent, name) as temporary:
            yield temporary
        created.clear()
    except Exception as error:
        message = _disk_error(error)
        if message is None:
            raise
        raise InputError(f"{subject}: cannot be written: {message}") from None
    finally:
        for directory in reversed(created):
            with suppress(OSError):
                directory.rmdir()


def _next_version(base: Path) -> int:
    """Returns the largest existing version plus 1.

    Files count, too, because a server would also read a file named `3` as version 3.
    """
    versions = [int(name) for name in os.listdir(base) if _VERSION.fullmatch(name)]
    version = max((n for n in versions if n <= _LARGEST_VERSION), default=0)
    if version == _LARGEST_VERSION:
        raise InputError(f"{base}: has version {version}, the largest there can be")
    return max(version, 0) + 1


def _renamed(source: Path, target: Path) -> bool:
    """Moves a directory; returns False if the target exists."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def _linked(source: Path, target: Path) -> bool:
    """Moves a file; returns False if the target exists."""
    try:
        # Unlike a rename, a link never replaces the target.
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError:
        # The file system may not support hard links.
        if os.path.lexists(target):
            return False
        os.rename(source, target)
    return True


def _check_path(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: a link that leads nowhere")
    nearest = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not nearest.is_dir():
        problem = "a file, expected a directory" if nearest == path else f"{nearest} is a file"
        raise InputError(f"{path}: {problem}")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(
            f"{path}: cannot be written: "
            f"{os.strerror(errno.EROFS if is_read_only(nearest) else errno.EACCES).lower()}"
        )


def _disk_error(error: Exception) -> str | None:
    """Returns the system's message for a disk error, or None for any other error."""
    if isinstance(error, OSError):
        return reason(error)
    if type(error).__module__.startswith("tensorflow."):
        message = str(error).lower()
        reasons = (os.strerror(number).lower() for number in _DISK_ERRORS)
        return next((text for text in reasons if text in message), None)
    return None
