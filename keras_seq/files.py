"""Files that are whole or not there, and files from elsewhere read with care."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from keras_seq.text import InputError

# What a killed process may leave has this prefix, and may be deleted.
TEMPORARY = ".tmp-"


def write_file(path: Path, content: bytes) -> None:
    """Writes a file and waits until the disk has it."""
    with open(path, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def write_file_whole(path: Path, content: bytes) -> None:
    """Puts a file in place by a rename: its old content or its new, never between."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    write_file(temporary, content)
    os.replace(temporary, path)
    sync_directory(path.parent)


def remove(path: Path) -> None:
    """Deletes a file, a link (not what it leads to) or a directory with its content."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Waits until the disk has the names in a directory."""
    # Windows cannot open a directory; its renames are durable enough without.
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_file(path: Path, limit: int) -> bytes:
    """The content of a regular file of a bounded size, else InputError."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path}: expected a regular file")
        if status.st_size > limit:
            raise InputError(f"{path}: {status.st_size:,} bytes, expected at most {limit:,}")
        with open(path, "rb") as stream:
            return stream.read(status.st_size)
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None


def reason(error: OSError) -> str:
    """What the operating system says, without errno and path."""
    return (error.strerror or str(error)).lower()
