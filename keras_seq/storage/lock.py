"""A lock that lets one process write to a directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from keras_seq.operating_system import NO_BLOCK, NO_FOLLOW, lock_file
from keras_seq.storage.reading import reason
from keras_seq.text import InputError

LOCK = ".lock"
_FLAGS = os.O_RDWR | os.O_CREAT | NO_FOLLOW | NO_BLOCK


class DirectoryLock:
    """A lock on an existing directory; the kernel releases it when the process ends.

    A file `.lock` is created and never deleted. `holder` is the kind of process that writes there,
    for the error message. Raises InputError if another process holds the lock, or the directory
    cannot be written.
    """

    def __init__(self, directory: Path, holder: str = "training") -> None:
        self._handle = -1
        path = directory / LOCK
        while self._handle < 0:
            try:
                handle = os.open(path, _FLAGS, 0o666)
            except OSError as error:
                raise InputError(f"{directory}: cannot be written: {reason(error)}") from None
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise InputError(f"{path}: a pipe or device, expected a regular file")
            if not lock_file(handle):
                os.close(handle)
                raise InputError(
                    f"{directory}: another {holder} is at work there: wait for it, end it, "
                    "or name another directory"
                )
            # Another process may have deleted and recreated the file since it was opened.
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                self._handle = handle
            else:
                os.close(handle)

    def release(self) -> None:
        """Releases the lock."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __del__(self) -> None:
        self.release()
