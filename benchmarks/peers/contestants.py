"""Contestants of the comparison: a name and the command that starts a process."""

from __future__ import annotations

import itertools
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from environments import SkippedError

HERE = pathlib.Path(__file__).resolve().parent


class Contestant(NamedTuple):
    """A program that answers requests."""

    name: str
    command: list[str]
    # Environment variables, which TensorFlow and JAX read.
    environment: dict[str, str]
    # Number of processes that share the work.
    processes: int = 1


def contestant(
    name: str, program: str, *options: object, python: str = sys.executable, **env: str
) -> Contestant:
    """Creates a contestant that runs a program from this directory with `python`."""
    return Contestant(name, [python, str(HERE / f"{program}.py"), *map(str, options)], env)


def cores() -> int:
    return os.cpu_count() or 1


def available(
    peers: Iterable[tuple[str, Callable[[], Iterator[Contestant]]]], forms: int | None = None
) -> Iterator[Contestant]:
    """Yields at most `forms` contestants per peer; prints why a peer is not available."""
    for name, peer in peers:
        try:
            yield from list(itertools.islice(peer(), forms))
        except SkippedError as reason:
            print(f"  skipped: {name}: {reason}", flush=True)
