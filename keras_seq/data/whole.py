"""A directory that is either there whole or not there at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keras_seq.text import InputError


@contextmanager
def whole_directory(directory: str | os.PathLike[str]) -> Iterator[Path]:
    """Offers a `.tmp-*` sibling to write into, and renames it to `directory` at the end.

    Every file is flushed to the disk before the rename, so that a crash at any
    moment leaves either no `directory` or a complete one. When the body raises,
    what it wrote is removed.

    Args:
        directory: The path that shall exist in the end. Its parents are made.
            It must not exist yet, or be an empty directory.

    Returns:
        A context manager that gives the path of the temporary directory.

    Raises:
        InputError: If `directory` exists and is not an empty directory.
    """
    final = Path(directory)
    if final.exists() and not (final.is_dir() and not any(final.iterdir())):
        raise InputError(f"{final}: exists already; remove it or name another directory")
    final.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile.mkdtemp: its directories are closed to everyone else, and would stay so.
    temporary = final.parent / f".tmp-{final.name}-{secrets.token_hex(8)}"
    temporary.mkdir()
    try:
        yield temporary
        for path in temporary.iterdir():
            # Opened for update: Windows cannot flush a file opened for reading.
            with path.open("r+b") as file:
                os.fsync(file.fileno())
        _flush_directory(temporary)
        if final.exists():
            final.rmdir()
        temporary.rename(final)
        _flush_directory(final.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _flush_directory(directory: Path) -> None:
    if os.name == "nt":
        # Windows has no handle of a directory that could be flushed.
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
