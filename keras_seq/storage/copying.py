"""Copies directories, and names the file that cannot be copied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def copy_tree(source: Path, target: Path) -> None:
    """Copies a directory into one that may exist; links are copied as links.

    Raises OSError that names the first file that cannot be read or written. `shutil` would list all
    of them.
    """
    failed: list[OSError] = []

    def copy(source: str, target: str) -> str:
        try:
            return str(shutil.copyfile(source, target, follow_symlinks=False))
        except OSError as error:
            # The error of a full disk has no name, or also that of the source.
            error.filename, error.filename2 = error.filename2 or error.filename or target, None
            failed.append(error)
            raise

    try:
        shutil.copytree(
            os.fspath(source), target, symlinks=True, dirs_exist_ok=True, copy_function=copy
        )
    except shutil.Error:
        if failed:
            raise failed[0] from None
        raise
