"""Stores the inputs and results of a job on disk, so that a restarted job can resume."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_seq.jobs.chunks import Chunk
from keras_seq.storage import make_directory, read_file, remove, write_file
from keras_seq.storage.limits import MAX_RECORD_BYTES
from keras_seq.text import InputError

_SHOWN = 4


class StoredResults:
    """A directory with one file for each completed chunk.

    A file name consists of the number and the key of the chunk. Files are written atomically and
    remain valid as long as the text and the task do not change.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._names = {path.name for path in directory.iterdir()} if directory.is_dir() else set()

    def has(self, chunk: Chunk) -> bool:
        return _name(chunk.number, chunk.key) in self._names

    def write(self, chunk: Chunk, body: bytes) -> None:
        """Writes the result of a chunk atomically; creates the directory if necessary."""
        if not self._names:
            make_directory(self._directory, parents=True)
        name = _name(chunk.number, chunk.key)
        write_file(self._directory / name, body)
        self._names.add(name)

    def count(self, keys: Sequence[str]) -> int:
        """Returns the number of stored chunks; `keys` are the keys of all chunks, in order."""
        return sum(_name(index, key) in self._names for index, key in enumerate(keys))

    def read(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yields all stored results; `keys` are the keys of all chunks, in order."""
        for index, key in enumerate(keys):
            yield (self._directory / _name(index, key)).read_bytes()

    def remove(self) -> None:
        remove(self._directory)
        self._names.clear()


def remove_others(directory: Path, names: Collection[str]) -> None:
    """Deletes all files and folders in a directory except `names`."""
    if directory.is_dir():
        for path in directory.iterdir():
            if path.name not in names:
                remove(path)


def _name(index: int, key: str) -> str:
    return f"{index:08d}-{key}"


def read_record(path: Path) -> dict[str, Any] | None:
    """Reads the record of a job from a JSON file; returns None if the file is missing."""
    if not path.exists():
        return None
    content = read_file(path, MAX_RECORD_BYTES)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError(f"{path}: not the record of a job: delete it, or use --overwrite")
    return value


def check_same_job(stored: Mapping[str, Any], requested: Mapping[str, Any], where: Path) -> None:
    """Raises InputError if a directory has results of a job with different inputs."""
    differences = [
        f"{key} {_show(stored.get(key))} -> {_show(requested.get(key))}"
        for key in {**stored, **requested}
        if stored.get(key) != requested.get(key)
    ]
    if differences:
        more = len(differences) - _SHOWN
        raise InputError(
            f"{where}: started with different settings: {'; '.join(differences[:_SHOWN])}"
            f"{f' and {more} more' if more > 0 else ''}: use the same settings, name another "
            "directory, or start again with --overwrite"
        )


def _show(value: Any) -> str:
    if isinstance(value, str) and value.startswith("sha256:"):
        return value[: len("sha256:") + 8]
    return "none" if value is None else str(value)
