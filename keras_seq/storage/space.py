"""Checks that files fit on a disk, before they are written."""

from __future__ import annotations

import shutil
from pathlib import Path

from keras_seq.storage.reading import reason
from keras_seq.text import InputError


def require_space(size: int, directory: Path, what: str) -> None:
    """Raises InputError if `size` bytes do not fit on the disk of a directory.

    Args:
        size: A lower bound, so that nothing is refused that would have fit.
        directory: An existing directory.
        what: What takes the space, such as "a checkpoint".
    """
    try:
        usage = shutil.disk_usage(directory)
    except OSError as error:
        raise InputError(f"{directory}: {reason(error)}") from None
    # Some file systems, such as those of a network, do not know their size.
    if usage.total and size > usage.free:
        raise InputError(
            f"{directory}: {what} needs {size / 2**20:,.1f} MB, but the disk has "
            f"{usage.free / 2**20:,.1f} MB free: free some, or use a directory on another disk"
        )
