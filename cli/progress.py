"""Shows the progress of a command on stderr."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from keras_seq_cli.output import notice

# Seconds between progress lines if stderr is not a terminal.
_SECONDS = 10.0


def shows_progress(option: bool | None, output: str | None) -> bool:
    """Returns whether a command shows its progress.

    By default, progress is shown if stderr is a terminal and results are not printed to a terminal.

    Args:
        option: Value of `--progress`; None if absent.
        output: File for the results; None for stdout.
    """
    if option is not None:
        return option
    return sys.stderr.isatty() and (output is not None or not sys.stdout.isatty())


class Progress:
    """Shows the number of finished lines, and the speed in lines per second.

    Args:
        total: Number of all lines; None if unknown.
        enabled: Boolean, whether to show progress.
    """

    def __init__(self, total: int | None, enabled: bool) -> None:
        self._total = total
        self._enabled = enabled
        self._has_bar = enabled and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._bar: Any = None
        self._done = 0
        self._start = self._last_report = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()
        if self._enabled and not self._has_bar:
            self._report()

    def resume(self) -> None:
        """Shows the progress bar if stderr is a terminal."""
        if self._has_bar and self._bar is None:
            self._bar = _bar(self._total, self._done)
            self._bar.start()

    def pause(self) -> None:
        """Hides the progress bar until `resume` is called."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def advance(self, lines: int) -> None:
        """Adds `lines` to the number of finished lines."""
        self._done += lines
        if self._bar is not None:
            self._bar.update(self._bar.tasks[0].id, completed=self._done)
        elif (
            self._enabled and not self._has_bar and time.monotonic() - self._last_report >= _SECONDS
        ):
            self._last_report = time.monotonic()
            self._report()

    def _report(self) -> None:
        seconds = max(time.monotonic() - self._start, 1e-9)
        total = f" of {self._total:,}" if self._total is not None else ""
        notice(f"{self._done:,}{total} lines, {self._done / seconds:,.1f} lines/s")


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
            seconds = task.finished_time or task.elapsed or 0.0
            return Text(f"{task.completed / seconds:,.1f} lines/s" if task.completed else "")

    of_total = [BarColumn(), TimeRemainingColumn()] if total is not None else []
    suffix = "/{task.total:,.0f}" if total is not None else ""
    bar = Bar(
        TextColumn(f"{{task.completed:,.0f}}{suffix} lines"),
        *of_total,
        TimeElapsedColumn(),
        Speed(),
        console=Console(stderr=True, highlight=False),
        # By default, rich would print the results on stderr together with the bar.
        redirect_stdout=False,
    )
    bar.add_task("translate", total=total, completed=done)
    return bar


@contextlib.contextmanager
def status_line(text: str) -> Iterator[None]:
    """Shows a status line on the terminal within this context."""
    if not sys.stderr.isatty():
        yield
        return
    sys.stderr.write(f"{text} ...")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write(f"\r{' ' * (len(text) + 4)}\r")
        sys.stderr.flush()
