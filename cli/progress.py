"""How far a command is, on stderr."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from keras_seq_cli.output import notice

# Between two words about it where there is no terminal to draw on.
_SECONDS = 10.0


def wants_progress(asked: bool | None, output: str | None) -> bool:
    """Whether to say how far it is: as asked for, or where it disturbs nothing.

    Args:
        asked: By an option; None if not.
        output: File for results; None for stdout.
    """
    if asked is not None:
        return asked
    return sys.stderr.isatty() and (output is not None or not sys.stdout.isatty())


class Progress:
    """Lines done, and how many a second.

    Args:
        total: All lines, None where that is not known.
        shown: Whether anything is said at all.
    """

    def __init__(self, total: int | None, shown: bool) -> None:
        self._total = total
        self._shown = shown
        self._drawn = shown and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._bar: Any = None
        self._done = 0
        self._start = self._said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()
        if self._shown and not self._drawn:
            self._say()

    def go_on(self) -> None:
        """Draws, where there is a terminal to draw on."""
        if self._drawn and self._bar is None:
            self._bar = _bar(self._total, self._done)
            self._bar.start()

    def pause(self) -> None:
        """Leaves the terminal to others, until `go_on`."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def done(self, lines: int) -> None:
        """So many lines more are written."""
        self._done += lines
        if self._bar is not None:
            self._bar.update(self._bar.tasks[0].id, completed=self._done)
        elif self._shown and not self._drawn and time.monotonic() - self._said >= _SECONDS:
            self._said = time.monotonic()
            self._say()

    def _say(self) -> None:
        passed = max(time.monotonic() - self._start, 1e-9)
        of = f" of {self._total:,}" if self._total is not None else ""
        notice(f"{self._done:,}{of} lines, {self._done / passed:,.1f} lines/s")


def _bar(total: int | None, done: int) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            passed = task.finished_time or task.elapsed or 0.0
            return Text(f"{task.completed / passed:,.1f} lines/s" if task.completed else "")

    known = [BarColumn(), TimeRemainingColumn()] if total is not None else []
    of = "/{task.total:,.0f}" if total is not None else ""
    bar = Bar(
        TextColumn(f"{{task.completed:,.0f}}{of} lines"),
        *known,
        TimeElapsedColumn(),
        Speed(),
        console=Console(stderr=True, highlight=False),
        # Results that go to a pipe are none of its business.
        redirect_stdout=False,
    )
    bar.add_task("translate", total=total, completed=done)
    return bar


@contextlib.contextmanager
def said_meanwhile(what: str) -> Iterator[None]:
    """Says on a terminal what is going on, and takes it back at the end."""
    if not sys.stderr.isatty():
        yield
        return
    sys.stderr.write(f"{what} ...")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write(f"\r{' ' * (len(what) + 4)}\r")
        sys.stderr.flush()
