"""Work cut into chunks: what a worker gets at a time, and gives back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from keras_seq.inference.output_formats import line_range
from keras_seq.text import read_lines

Notice = Callable[[str], None]
Item = TypeVar("Item")

# A chunk is held in memory several times over, so lines of a megabyte make a smaller one.
MAX_CHARACTERS = 1 << 24
_KEY_DIGITS = 16


class Chunk(NamedTuple):
    """Some lines of a file.

    Attributes:
        file: The number of the file in its job, from 0.
        number: The number of the chunk in its file, from 0.
        first: The number of its first line in the file, from 1.
        where: File and lines, for messages.
        body: The lines, as the task of the job reads them.
    """

    file: int
    number: int
    first: int
    where: str
    body: bytes

    @property
    def key(self) -> str:
        """What changes with the text or its place in the file."""
        digest = hashlib.sha256(b"%d\n" % self.first)
        digest.update(self.body)
        return digest.hexdigest()[:_KEY_DIGITS]


class Result(NamedTuple):
    """What became of a chunk.

    Attributes:
        body: Bytes, as the task of the job writes them.
        notices: Lines for the user.
    """

    body: bytes
    notices: tuple[str, ...] = ()


class Task(Protocol):
    """What is done with each chunk; it is pickled, to be sent to the workers."""

    def start(self, threads: int) -> Callable[[Chunk], Result]:
        """Makes ready for chunks, in a worker that may use so many threads.

        What takes long is done at the first chunk that needs it.
        """

    def portable(self) -> Task:
        """The same with all it needs from files of this machine in itself."""


Results = Generator[tuple[Chunk, Result], None, None]


class Runner(Protocol):
    """Does chunks somewhere: `run_locally` or `run_on_ray`."""

    def __call__(
        self, task: Task, chunks: Iterable[Chunk], *, workers: int | None, notice: Notice
    ) -> Results:
        """Gives each chunk and what became of it, in the order of their ends."""


def line_chunks(file: int, path: str, count: int, notice: Notice | None = None) -> Iterator[Chunk]:
    """The chunks of a file of lines; a body is lines joined by line feeds.

    Args:
        file: Its number in the job.
        path: Its name.
        count: Lines in a chunk.
        notice: As for `read_lines`.

    Raises:
        InputError: While iterating, for whatever is wrong with the file.
    """
    lines = read_lines(path, errors="replace", notice=notice)
    first = 1
    for number, block in enumerate(blocks(lines, count, len)):
        # A lone surrogate cannot come from a file, so this never fails.
        body = "\n".join(block).encode()
        yield Chunk(file, number, first, f"{path} {line_range(first, len(block))}", body)
        first += len(block)


def blocks(items: Iterable[Item], count: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Lists of `count` items, or of fewer where these are large already."""
    block: list[Item] = []
    characters = 0
    for item in items:
        block.append(item)
        characters += size(item)
        if len(block) >= count or characters >= MAX_CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block
