"""Errors of the operating system that name their file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def named_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Gives errors of the operating system in the block the name of a file if they have none.

    The errors of a failed write, such as that of a full disk, and of a failed read have none.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise
