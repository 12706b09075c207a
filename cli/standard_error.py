"""Standard error, whose failures end no command."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def forgiving_standard_error() -> Iterator[None]:
    """Loses the messages of this context that cannot be written, such as on a full disk.

    Otherwise they would end a training of hours, or keep a server from loading newer models.
    """
    with contextlib.redirect_stderr(_Forgiving(sys.stderr)):
        yield


class _Forgiving:
    """A text stream whose `write` and `flush` ignore errors of the operating system."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
