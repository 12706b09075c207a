"""Atomic writes: a file or a directory appears complete, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from keras_seq.operating_system import NO_BLOCK, NO_FOLLOW, lock_directory, sync_directory
from keras_seq.storage.reading import check_regular, reason
from keras_seq.text import InputError

# Prefix of temporary files and directories: content is written, flushed and renamed. A killed
# process leaves them behind. A temporary directory is locked while it is written.
TEMPORARY = ".tmp-"
# A file name has at most 255 bytes, and UTF-8 takes up to four bytes per character.
_NAME_CHARACTERS = 40


def write_file(path: Path, content: bytes) -> None:
    """Writes a file atomically: readers see its old content or its new content."""
    with atomic_file(path) as stream:
        stream.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing that replaces `path` when the block ends without an error.

    A link at this name is replaced, not followed. Raises InputError if `path` is a device or a
    pipe, and OSError if the disk is full or read-only; the old content stays.
    """
    path = Path(path)
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise InputError(f"{path}: a pipe or a device, expected a file that can be replaced")
    temporary = _temporary_name(path.parent, path.name)
    with _named_errors(path, temporary):
        try:
            with open(temporary, "xb", opener=_open_new) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


@contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Creates a temporary directory that is renamed to `path` when the block ends without an error.

    All files are flushed to the disk before the rename, so a crash leaves either no `path` or a
    complete one. Creates missing parents. Raises InputError unless `path` is missing or empty.
    """
    path = Path(path)
    if os.path.lexists(path) and (path.is_symlink() or not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path}: exists already; remove it or name another directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        temporary_directory(path.parent, path.name) as temporary,
        _named_errors(path, temporary),
    ):
        yield temporary
        sync_tree(temporary)
        # `rename` replaces an empty directory and fails on any other.
        os.rename(temporary, path)
        sync_parent(path)


def sync_parent(path: Path) -> None:
    """Flushes the name of a new file or directory to the disk; removes it if that fails.

    The caller reports the failure, and the same command can then be run again.
    """
    try:
        sync_directory(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            remove(path)
        raise


@contextmanager
def temporary_directory(parent: Path, name: str) -> Iterator[Path]:
    """Creates a directory `.tmp-NAME-RANDOM`; deletes it after the block unless it was renamed.

    The directory is locked while the block runs. Directories of the same name that dead processes
    left behind are deleted first, except on Windows, which has no locks on directories.
    """
    for entry in list(os.scandir(parent)):
        if entry.name.startswith(_temporary_prefix(name)) and entry.is_dir(follow_symlinks=False):
            if (abandoned := lock_directory(Path(entry.path))) is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(abandoned)
    path, handle = _locked_directory(parent, name)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def remove_temporaries(directory: Path, names: Iterable[str] | None = None) -> None:
    """Deletes temporary files of killed processes; for the process that holds the lock.

    These are the temporaries of the files `names`. None deletes all `.tmp-*`, for a directory that
    contains files of this package only.
    """
    prefixes = (TEMPORARY,) if names is None else tuple(map(_temporary_prefix, names))
    if prefixes and directory.is_dir() and not directory.is_symlink():
        for entry in list(os.scandir(directory)):
            if entry.name.startswith(prefixes):
                remove(Path(entry.path))


def make_directory(path: Path, *, parents: bool = False) -> None:
    """Creates a directory, and optionally its parents, if it is missing.

    Raises InputError if `path` is a link, and OSError if it is a file or cannot be created.
    """
    check_no_link(path)
    path.mkdir(parents=parents, exist_ok=True)


def check_no_link(path: Path) -> None:
    """Raises InputError if a directory, which may be missing, is a link."""
    if path.is_symlink():
        raise InputError(f"{path}: a link, expected a directory")


def open_to_append(path: Path) -> IO[bytes]:
    """Opens a regular file for appending, and creates it if it is missing."""
    check_regular(path)
    flags = NO_FOLLOW | NO_BLOCK
    return open(path, "ab", opener=lambda name, mode: os.open(name, mode | flags, 0o666))


def check_writable(directory: Path) -> None:
    """Raises InputError if a test file cannot be written to a directory."""
    probe = _temporary_name(directory, "probe")
    try:
        with open(probe, "xb", opener=_open_new) as stream:
            stream.write(b"?")
            stream.flush()
            os.fsync(stream.fileno())
        probe.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
        raise InputError(f"{directory}: cannot be written: {reason(error)}") from None


def remove(path: Path) -> None:
    """Deletes a file, a link (not its target) or a directory with its content."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync_tree(path: Path) -> None:
    """Flushes a file, or a directory with its content, to the disk."""
    if not path.is_dir():
        # Windows flushes a file only if it is open for writing.
        with open(path, "r+b") as stream:
            os.fsync(stream.fileno())
        return
    for directory, _, names in os.walk(path):
        for name in names:
            sync_tree(Path(directory, name))
        sync_directory(Path(directory))


@contextmanager
def _named_errors(path: Path, temporary: Path) -> Iterator[None]:
    """Gives errors of the operating system the name of the file or directory to write.

    The error of a full disk has no name, and other errors have the temporary one.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            named = Path(error.filename) if isinstance(error.filename, str) else temporary
            if named.is_relative_to(temporary):
                error.filename = str(path / named.relative_to(temporary))
        raise


def _temporary_prefix(name: str) -> str:
    return f"{TEMPORARY}{name[:_NAME_CHARACTERS]}-"


def _temporary_name(parent: Path, name: str) -> Path:
    return parent / f"{_temporary_prefix(name)}{secrets.token_hex(8)}"


def _open_new(path: str, flags: int) -> int:
    # Writes follow no link: `O_EXCL` refuses existing files, and a rename replaces a link.
    return os.open(path, flags | NO_FOLLOW, 0o666)


def _locked_directory(parent: Path, name: str) -> tuple[Path, int | None]:
    """Creates a directory and locks it until the returned handle is closed."""
    while True:
        # Avoids `tempfile.mkdtemp`, because other users, such as the user of a model server, could
        # not read the directory.
        path = _temporary_name(parent, name)
        path.mkdir()
        handle = lock_directory(path, wait=True)
        # Another process may have deleted the directory before it was locked.
        if path.exists():
            return path, handle
        if handle is not None:
            os.close(handle)
