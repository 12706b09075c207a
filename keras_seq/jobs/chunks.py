"""Chunks of work and their results, and the interfaces of tasks and runners."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from keras_seq.inference.output_formats import line_range
from keras_seq.text import Notice, read_lines

Item = TypeVar("Item")

# Number of characters after which a chunk ends, because memory holds several copies of a chunk.
MAX_CHARACTERS = 1 << 24


class Chunk(NamedTuple):
    """Consecutive lines of a file, serialized for the task.

    `file` and `number` are the indices of the file and the chunk, from 0. `first` is the number of
    the first line, from 1. `where` names the file and the lines in messages.
    """

    file: int
    number: int
    first: int
    where: str
    body: bytes

    @property
    def key(self) -> str:
        """Hash computed from the text and the number of the first line."""
        digest = hashlib.sha256(b"%d\n" % self.first)
        digest.update(self.body)
        return digest.hexdigest()[:16]


class Result(NamedTuple):
    """The output for a chunk, serialized by the task, with messages for the user."""

    body: bytes
    notices: tuple[str, ...] = ()


class Task(Protocol):
    """A picklable object that creates the work function of a job in each worker."""

    def start(self, threads: int) -> Callable[[Chunk], Result]:
        """Returns a function that processes a chunk, with at most `threads` threads.

        The function loads the model for the first chunk that needs the model.
        """

    def portable(self) -> Task:
        """Returns a copy of the task that includes the content of all files it needs."""


Results = Generator[tuple[Chunk, Result], None, None]


class Runner(Protocol):
    """Interface of `run_locally` and `run_on_ray`, which run a task on all chunks.

    Chunks are read as workers become free. `workers` is the number of workers; by default one per
    four cores. `notice` receives a message for each worker that ended unexpectedly.
    """

    def __call__(
        self, task: Task, chunks: Iterable[Chunk], *, workers: int | None, notice: Notice
    ) -> Results:
        """Yields each chunk with its result, in the order of completion.

        Closing the iterator ends the workers. Iteration raises InputError if the text is invalid or
        no cluster is available, and JobError if a chunk fails or no worker starts.
        """


def line_chunks(file: int, path: str, count: int, notice: Notice | None = None) -> Iterator[Chunk]:
    """Splits a text file into chunks of at most `count` lines, joined by line feeds."""
    lines = read_lines(path, errors="replace", notice=notice)
    first = 1
    for number, block in enumerate(blocks(lines, count, len)):
        # `read_lines` replaces invalid bytes, so encoding cannot fail.
        body = "\n".join(block).encode()
        yield Chunk(file, number, first, f"{path} {line_range(first, len(block))}", body)
        first += len(block)


def blocks(items: Iterable[Item], count: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yields lists of at most `count` items; a list ends early at `MAX_CHARACTERS` characters."""
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
