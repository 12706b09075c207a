"""Text files that appear complete, or not at all."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keras_seq.storage.atomic import atomic_file


@contextmanager
def atomic_lines(path: Path) -> Iterator[Callable[[str], object]]:
    """Opens a text file that replaces `path` when the block ends without an error.

    Yields a function that writes one line in UTF-8. The file is gzipped if its name ends in `.gz`.
    """
    with atomic_file(path) as file:
        stream = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.suffix == ".gz" else file
        yield lambda line: stream.write(line.encode("utf-8", "replace") + b"\n")
        if stream is not file:
            stream.close()
