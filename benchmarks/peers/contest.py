"""Contestants' processes, and how they take turns."""

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

# Threads of OpenMP wait for more work with all their might, for up to 0.2 s.
PAUSE_SECONDS = 0.3

Answer = dict[str, Any]


def begin(contestant: Contestant, errors: IO[str]) -> subprocess.Popen[str]:
    """A process of a contestant, which is asked and answers by lines; the rest goes to `errors`."""
    return subprocess.Popen(
        contestant.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, **contestant.environment},
    )


class Entrant:
    """The processes of a contestant, most have one; what they say on stderr goes to a log.

    Attributes:
        name: The contestant's.
        figures: Of each turn that was counted.

    Raises:
        SkippedError: One ended.
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
        """What it runs on, once the model is loaded."""
        return self._answers()[0]

    def ask(self, requests: list[dict[str, Any]]) -> list[Answer]:
        """Gives each process a request, and waits for all the answers."""
        for process, request in zip(self._processes, requests, strict=True):
            process.stdin.write(json.dumps(request) + "\n")
        for process in self._processes:
            process.stdin.flush()
        return self._answers()

    def close(self) -> None:
        for process in self._processes:
            # One that ended has not read all that was written for it.
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
    """Where a contestant's words go."""
    (work / "logs").mkdir(parents=True, exist_ok=True)
    return work / "logs" / f"{re.sub('[^A-Za-z0-9]+', '-', name)}.log"


def compete(
    work: pathlib.Path,
    contestants: Iterable[Contestant],
    turn: Callable[[Entrant, bool], Answer],
    repeat: int,
) -> dict[str, list[Answer]]:
    """Gives all contestants a turn that is not counted, and then so many that are, one by one.

    Args:
        work: The folder of the logs.
        contestants: Who takes part; one that fails is left out from there on, with the reason.
        turn: Called with an entrant, and whether the turn counts; gives its figures.
        repeat: Turns that count. Another contestant begins every time.

    Returns:
        For each contestant that got through, the figures of each turn.
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
    """Goes on without an entrant that fails, and says so."""
    try:
        yield
    except (SkippedError, BrokenPipeError) as reason:
        print(f"  skipped: {entrant.name}: {reason}", flush=True)
        entrants.remove(entrant)
        entrant.close()
