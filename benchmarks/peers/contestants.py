"""What takes part: a name, and a command for its process."""

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
    # Read by TensorFlow and JAX.
    environment: dict[str, str]
    # Each with a share of the work.
    processes: int = 1


def contestant(
    name: str, program: str, *options: object, python: str = sys.executable, **env: str
) -> Contestant:
    """The program of that name beside this file, in a Python of its own."""
    return Contestant(name, [python, str(HERE / f"{program}.py"), *map(str, options)], env)


def cores() -> int:
    return os.cpu_count() or 1


def available(
    peers: Iterable[tuple[str, Callable[[], Iterator[Contestant]]]], forms: int | None = None
) -> Iterator[Contestant]:
    """The contestants of each peer that can be had, all or so many; says why others cannot."""
    for name, peer in peers:
        try:
            yield from list(itertools.islice(peer(), forms))
        except SkippedError as reason:
            print(f"  skipped: {name}: {reason}", flush=True)
