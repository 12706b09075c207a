"""Runs the processes of all contestants in turns."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from contestants import Contestant
from environments import SkippedError

# OpenMP threads busy-wait for more work for up to 0.2 s.
PAUSE_SECONDS = 0.3

Answer = dict[str, Any]


def begin(contestant: Contestant, errors: IO[str]) -> subprocess.Popen[str]:
    """Starts a process: requests on stdin, answers on stdout, and stderr goes to `errors`."""
    return subprocess.Popen(
        contestant.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, **contestant.environment},
    )


class Entrant:
    """The processes of a contestant, usually only one; their stderr goes to a log.

    Attributes:
        name: Name of the contestant.
        figures: Figures of each counted turn.

    Raises:
        SkippedError: A process ended.
    """

    def __init__(self, contestant: Contestant, log: pathlib.Path) -> None:
        self.name = contestant.name
        self.figures: list[Answer] = []
        self._log = log
        with log.open("w") as stream:
            self._processes = [begin(contestant, stream) for _ in range(contestant.processes)]

    @property
    def processes(self) -> int:
        return len(self._processes)

    def versions(self) -> str:
        """Waits until the model is loaded and returns the versions of its packages."""
        return self._answers()[0]

    def ask(self, requests: list[dict[str, Any]]) -> list[Answer]:
        """Sends one request to each process and waits for all answers."""
        for process, request in zip(self._processes, requests, strict=True):
            process.stdin.write(json.dumps(request) + "\n")
        for process in self._processes:
            process.stdin.flush()
        return self._answers()

    def close(self) -> None:
        for process in self._processes:
            # Closing flushes, which fails if the process has already ended.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in self._processes:
            process.wait()
            process.stdout.close()

    def _answers(self) -> list:
        lines = [process.stdout.readline() for process in self._processes]
        for line, process in zip(lines, self._processes, strict=True):
            if not line:
                raise SkippedError(f"its process ended with {process.wait()}; see {self._log}")
        return [json.loads(line) for line in lines]


def log_of(work: pathlib.Path, name: str) -> pathlib.Path:
    """Returns the path of a contestant's log and creates its directory."""
    (work / "logs").mkdir(parents=True, exist_ok=True)
    return work / "logs" / f"{re.sub('[^A-Za-z0-9]+', '-', name)}.log"


def compete(
    work: pathlib.Path,
    contestants: Iterable[Contestant],
    turn: Callable[[Entrant, bool], Answer],
    repeat: int,
) -> dict[str, list[Answer]]:
    """Runs one uncounted turn of each contestant, then `repeat` counted rounds of turns.

    Args:
        work: Directory of the benchmark; logs go to its `logs` directory.
        contestants: A contestant that fails is removed, and the reason is printed.
        turn: Function of an entrant and a flag that is true if the turn counts; returns figures.
        repeat: Number of counted rounds. Each round begins with a different contestant.

    Returns:
        For each contestant that did not fail, the figures of each counted turn.
    """
    entrants: list[Entrant] = []
    try:
        for contestant in contestants:
            entrant = Entrant(contestant, log_of(work, contestant.name))
            entrants.append(entrant)
            with _dropped(entrant, entrants):
                print(f"  {entrant.name}: {entrant.versions()}", flush=True)
                turn(entrant, False)
        order = list(entrants)
        for number in range(repeat):
            first = number % max(1, len(order))
            for entrant in order[first:] + order[:first]:
                if entrant in entrants:
                    time.sleep(PAUSE_SECONDS)
                    with _dropped(entrant, entrants):
                        entrant.figures.append(turn(entrant, True))
    finally:
        for entrant in entrants:
            entrant.close()
    return {entrant.name: entrant.figures for entrant in entrants}


@contextlib.contextmanager
def _dropped(entrant: Entrant, entrants: list[Entrant]) -> Iterator[None]:
    """Removes an entrant that fails and prints the reason; the others continue."""
    try:
        yield
    except (SkippedError, BrokenPipeError) as reason:
        print(f"  skipped: {entrant.name}: {reason}", flush=True)
        entrants.remove(entrant)
        entrant.close()
