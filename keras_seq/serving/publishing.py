"""Exports that appear whole, by one rename, or not at all.

A model server looks at a base directory every second and loads whatever subdirectory
has an integer for a name. So a version is written under another name, flushed to the
disk and renamed; the same goes for exports that are one file or one directory.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from keras_seq.run import is_run
from keras_seq.storage import check_tree, reason, sync_directory, sync_tree, temporary_directory
from keras_seq.text import InputError

# What TensorFlow Serving takes for a version: text that its strtoll reads whole.
_VERSION = re.compile(r"\s*[+-]?[0-9]+\s*")
_LARGEST_VERSION = 2**63 - 1
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR}
# TensorFlow's own errors carry the system's words for these, but no number.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)


def check_base(base: Path) -> None:
    """Refuses a place where no version can be published; changes nothing.

    To be called before the work of minutes whose result goes there.

    Args:
        base: The directory that is to hold the versions; it need not exist.

    Raises:
        InputError: A file, a run directory, a version or another SavedModel, or
            a place that cannot be written.
    """
    base = Path(base)
    try:
        _check_place(base)
        if (base / "saved_model.pb").exists():
            raise InputError(
                f"{base}: a SavedModel itself, expected the directory above it, whose "
                "subdirectories 1, 2, ... are the versions"
            )
        # A guide is written there.
        check_tree(base / "serving")
        if is_run(base):
            raise InputError(f"{base}: a run directory, expected a directory for exports")
    except OSError as error:
        raise InputError(f"{base}: {reason(error)}") from None


def check_destination(destination: Path) -> None:
    """Refuses a place where no new file or directory can be published; changes nothing.

    Args:
        destination: What is to be made.

    Raises:
        InputError: It exists, or cannot be made.
    """
    destination = Path(destination)
    try:
        if os.path.lexists(destination):
            raise InputError(f"{destination}: exists already, name another")
        _check_place(destination)
    except OSError as error:
        raise InputError(f"{destination}: {reason(error)}") from None


def publish_version(base: Path, write: Callable[[Path], None]) -> Path:
    """Publishes the next version: the largest there is plus 1, or 1.

    Args:
        base: Directory of the versions, made if it is not there.
        write: Called with the path of a new, empty directory to fill. What it
            raises leaves nothing behind.

    Returns:
        The version's directory, `base/N`.

    Raises:
        InputError: The disk is full or read-only, `base` is a file: `PATH: what`.

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
    with _workplace(base, base, "version") as temporary:
        write(temporary)
        sync_tree(temporary)
        final = base / str(_next_version(base))
        # A rename replaces an empty directory, where nothing is lost, and refuses any other.
        while not _renamed(temporary, final):
            final = base / str(_next_version(base))
        sync_directory(base)
    return final


def publish_directory(destination: Path, write: Callable[[Path], None]) -> Path:
    """Publishes one new directory or file.

    Args:
        destination: What is to be made; it must not exist.
        write: Called with a path that does not exist, of the same name in a
            temporary directory; makes a directory or a file of it.

    Returns:
        `destination`.

    Raises:
        InputError: `destination` exists, or the disk is full or read-only.

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
    with _workplace(parent, destination, destination.name) as temporary:
        written = temporary / destination.name
        write(written)
        sync_tree(written)
        if written.is_dir():
            taken = os.path.lexists(destination) or not _renamed(written, destination)
        else:
            taken = not _linked(written, destination)
        if taken:
            raise InputError(f"{destination}: exists already, name another")
        sync_directory(parent)
    return destination


@contextmanager
def _workplace(parent: Path, subject: Path, name: str) -> Iterator[Path]:
    """A new directory in `parent`, removed at the end with everything that is still in it.

    If the block fails, directories above that were created for it are removed, too, and an
    error of the disk is raised as an InputError about `subject`.
    """
    made: list[Path] = []
    try:
        for directory in reversed([parent, *parent.parents]):
            if not directory.exists():
                directory.mkdir(exist_ok=True)
                made.append(directory)
        with temporary_directory(parent, name) as temporary:
            yield temporary
        made.clear()
    except Exception as error:
        said = _disk_error(error)
        if said is None:
            raise
        raise InputError(f"{subject}: cannot be written: {said}") from None
    finally:
        for directory in reversed(made):
            with suppress(OSError):
                directory.rmdir()


def _next_version(base: Path) -> int:
    """One more than the largest version there is.

    A file with such a name counts: a server would take it for the newest version.
    """
    found = [int(name) for name in os.listdir(base) if _VERSION.fullmatch(name)]
    version = max((n for n in found if n <= _LARGEST_VERSION), default=0)
    if version == _LARGEST_VERSION:
        raise InputError(f"{base}: has version {version}, the largest there can be")
    return max(version, 0) + 1


def _renamed(source: Path, target: Path) -> bool:
    """Moves a directory; False if the target has been taken meanwhile."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def _linked(source: Path, target: Path) -> bool:
    """Moves a file; False if the target has been taken meanwhile."""
    try:
        # Unlike a rename, a link never replaces what is there.
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError:
        # A file system without hard links.
        if os.path.lexists(target):
            return False
        os.rename(source, target)
    return True


def _check_place(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: a link that leads nowhere")
    nearest = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not nearest.is_dir():
        what = "a file, expected a directory" if nearest == path else f"{nearest} is a file"
        raise InputError(f"{path}: {what}")
    if not os.access(nearest, os.W_OK | os.X_OK):
        read_only = hasattr(os, "statvfs") and os.statvfs(nearest).f_flag & os.ST_RDONLY
        raise InputError(
            f"{path}: cannot be written: "
            f"{os.strerror(errno.EROFS if read_only else errno.EACCES).lower()}"
        )


def _disk_error(error: Exception) -> str | None:
    """What the operating system said, None if the error is not about files."""
    if isinstance(error, OSError):
        return reason(error)
    if type(error).__module__.startswith("tensorflow."):
        said = str(error).lower()
        return next((t for n in _DISK_ERRORS if (t := os.strerror(n).lower()) in said), None)
    return None
