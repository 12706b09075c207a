"""Chunks: the unit of work that a worker receives, and its result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from keras_seq.inference.output_formats import line_range
from keras_seq.text import Notice, read_lines

Item = TypeVar("Item")

# Memory holds several copies of a chunk, so very long lines make smaller chunks.
MAX_CHARACTERS = 1 << 24


class Chunk(NamedTuple):
    """Consecutive lines of a file, encoded for the task of the job.

    `file` and `number` count from 0, `first` is a line number from 1. `where` names the file and
    the lines in messages.
    """

    file: int
    number: int
    first: int
    where: str
    body: bytes

    @property
    def key(self) -> str:
        """A hash of the text and of its position in the file."""
        digest = hashlib.sha256(b"%d\n" % self.first)
        digest.update(self.body)
        return digest.hexdigest()[:16]


class Result(NamedTuple):
    """The output for a chunk, encoded by the task of the job, and lines for the user."""

    body: bytes
    notices: tuple[str, ...] = ()


class Task(Protocol):
    """The function of a job, which is pickled and sent to the workers."""

    def start(self, threads: int) -> Callable[[Chunk], Result]:
        """Returns the function from chunks to results, in a worker that may use N threads.

        The first chunk that needs a model loads it.
        """

    def portable(self) -> Task:
        """Returns a task that holds the content of all files that it needs."""


Results = Generator[tuple[Chunk, Result], None, None]


class Runner(Protocol):
    """Runs a task on chunks: `run_locally` or `run_on_ray`.

    The chunks are read as workers become free. `workers` is the number of workers; None is one per
    four cores. `notice` receives a line for each worker that ended unexpectedly.
    """

    def __call__(
        self, task: Task, chunks: Iterable[Chunk], *, workers: int | None, notice: Notice
    ) -> Results:
        """Yields each chunk with its result, in the order of completion.

        Closing the iterator ends the workers. During iteration, it raises InputError if the text is
        invalid or the workers cannot be used, and JobError if a chunk fails.
        """


def line_chunks(file: int, path: str, count: int, notice: Notice | None = None) -> Iterator[Chunk]:
    """Yields the chunks of a text file; their bodies are `count` lines joined by line feeds."""
    lines = read_lines(path, errors="replace", notice=notice)
    first = 1
    for number, block in enumerate(blocks(lines, count, len)):
        # Lines from a file have no lone surrogates, so encoding cannot fail.
        body = "\n".join(block).encode()
        yield Chunk(file, number, first, f"{path} {line_range(first, len(block))}", body)
        first += len(block)


def blocks(items: Iterable[Item], count: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yields lists of `count` items, or of fewer items if these are long."""
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
