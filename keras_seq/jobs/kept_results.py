"""Results of chunks that are done, on disk: what a job that is started again need not do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from keras_seq.jobs.chunks import Chunk
from keras_seq.storage import make_directory, remove, write_file


class KeptResults:
    """A directory with a file for each chunk that is done.

    A file has the chunk's number and key in its name and appears when it is whole, so one that
    is there is right for as long as the text and the task are the same.

    Args:
        directory: Made with the first result.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
        self._names = set(names)

    def has(self, chunk: Chunk) -> bool:
        """Whether a chunk is done."""
        return _name(chunk.number, chunk.key) in self._names

    def keep(self, chunk: Chunk, body: bytes) -> None:
        """Keeps the result of a chunk; when this returns, the disk has it."""
        if not self._names:
            make_directory(self._directory, parents=True)
        name = _name(chunk.number, chunk.key)
        write_file(self._directory / name, body)
        self._names.add(name)

    def count(self, keys: Sequence[str]) -> int:
        """How many of the chunks with these keys, in their order, are done."""
        return sum(_name(index, key) in self._names for index, key in enumerate(keys))

    def read(self, keys: Sequence[str]) -> Iterator[bytes]:
        """The results of the chunks with these keys, in their order."""
        for index, key in enumerate(keys):
            yield (self._directory / _name(index, key)).read_bytes()

    def remove(self) -> None:
        """Deletes all."""
        remove(self._directory)
        self._names.clear()


def remove_others(directory: Path, names: Collection[str]) -> None:
    """Deletes what is in a directory, except for what has one of these names."""
    if directory.is_dir():
        for path in directory.iterdir():
            if path.name not in names:
                remove(path)


def _name(index: int, key: str) -> str:
    return f"{index:08d}-{key}"
