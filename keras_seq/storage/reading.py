"""Reads untrusted files: regular files only, of bounded size."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from pathlib import Path
from typing import Any

from keras_seq.operating_system import NO_BLOCK, NO_FOLLOW
from keras_seq.storage.limits import MAX_ENTRIES
from keras_seq.text import InputError

_FLAGS = NO_FOLLOW | NO_BLOCK
# A file system may use no blocks for files up to this size.
_SPARSE_BYTES = 1 << 20


def check_regular(path: str | os.PathLike[str]) -> Path:
    """Returns the path if it is a regular file or missing; raises InputError otherwise."""
    path = Path(path)
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return path
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    if not stat.S_ISREG(mode):
        raise InputError(_not_regular(path, mode))
    return path


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Opens a regular file for reading. Links are not followed, and pipes do not block.

    Raises InputError if `path` is not a regular file, and OSError if it cannot be read.
    """
    check_regular(path)
    stream = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _FLAGS))
    # Another process may have replaced the file after the check.
    mode = os.fstat(stream.fileno()).st_mode
    if not stat.S_ISREG(mode):
        stream.close()
        raise InputError(_not_regular(path, mode))
    return stream


def check_tree(directory: Path, limit: int | None = MAX_ENTRIES) -> None:
    """Checks that a directory contains regular files and directories only, at any depth.

    `limit` is the maximum number of entries; None for a directory that jobs fill.
    """
    pending, count = [directory], 0
    while pending:
        path = pending.pop()
        try:
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                pending += sorted(path.iterdir(), reverse=True)
        except FileNotFoundError:
            # A running training process deletes old checkpoints.
            continue
        except OSError as error:
            raise InputError(f"{path}: {reason(error)}") from None
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise InputError(_not_regular(path, mode))
        count += 1
        if limit is not None and count + len(pending) > limit:
            raise InputError(f"{directory}: more than {limit:,} files")


def read_file(path: Path, limit: int) -> bytes:
    """Reads a regular file of at most `limit` bytes; InputError if that fails."""
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > limit:
                raise InputError(f"{path}: {size:,} bytes, expected at most {limit:,}")
            return stream.read(size)
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None


def read_json(path: Path, limit: int) -> dict[str, Any]:
    """Reads a JSON object from a file of at most `limit` bytes; InputError if that fails."""
    content = read_file(path, limit)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not valid JSON") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected a JSON object")
    return value


def size_on_disk(status: os.stat_result) -> int:
    """Returns the size of a file, or four times the disk space that it takes, if that is less.

    The nominal size of a sparse file may be terabytes.
    """
    if status.st_size <= _SPARSE_BYTES or not hasattr(status, "st_blocks"):
        return status.st_size
    return min(status.st_size, 4 * 512 * status.st_blocks)


def hash_file(path: Path, *, follow_links: bool = False) -> str:
    """Computes the SHA-256 of a file, in hexadecimal.

    A file that the user named may be a link (`follow_links`).
    """
    try:
        with open(path, "rb") if follow_links else open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        # The error of a read lacks the path.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def reason(error: OSError) -> str:
    """Returns the message of an operating system error, without number and path."""
    return (error.strerror or str(error)).lower()


def _not_regular(path: str | os.PathLike[str], mode: int) -> str:
    # Files in the cache of the Hugging Face Hub are links.
    advice = "; cp -rL copies what links lead to" if stat.S_ISLNK(mode) else ""
    return f"{path}: {_kind(mode)}, expected a regular file{advice}"


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
