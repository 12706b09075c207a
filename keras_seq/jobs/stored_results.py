"""Results of chunks on disk, which a restarted job does not compute again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from keras_seq.jobs.chunks import Chunk
from keras_seq.storage import make_directory, remove, write_file


class StoredResults:
    """A directory with one file for each completed chunk, created with the first result.

    The name of a file has the number and the key of its chunk. Files are written atomically, so a
    file is valid as long as the text and the task are the same.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
        self._names = set(names)

    def has(self, chunk: Chunk) -> bool:
        """Returns True if the result of a chunk is stored."""
        return _name(chunk.number, chunk.key) in self._names

    def write(self, chunk: Chunk, body: bytes) -> None:
        """Stores the result of a chunk durably."""
        if not self._names:
            make_directory(self._directory, parents=True)
        name = _name(chunk.number, chunk.key)
        write_file(self._directory / name, body)
        self._names.add(name)

    def count(self, keys: Sequence[str]) -> int:
        """Returns how many of the chunks with these keys, in order, are stored."""
        return sum(_name(index, key) in self._names for index, key in enumerate(keys))

    def read(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yields the results of the chunks with these keys, in order."""
        for index, key in enumerate(keys):
            yield (self._directory / _name(index, key)).read_bytes()

    def remove(self) -> None:
        """Deletes all results."""
        remove(self._directory)
        self._names.clear()


def remove_others(directory: Path, names: Collection[str]) -> None:
    """Deletes everything in a directory except the given names."""
    if directory.is_dir():
        for path in directory.iterdir():
            if path.name not in names:
                remove(path)


def _name(index: int, key: str) -> str:
    return f"{index:08d}-{key}"
