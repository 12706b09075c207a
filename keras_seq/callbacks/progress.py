"""A progress line on standard error."""

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from keras_seq import backend
from keras_seq.callbacks.counting_callback import LossCallback


class Progress(LossCallback):
    """Prints the step, loss, learning rate, tokens per second and remaining time.

    On a terminal and in a notebook, the line is updated in place. In a file, a line is added every
    `seconds`. During the first update, the line says that the model is being compiled.

    Args:
        tokens: Function without arguments that returns the number of tokens trained on so far
            (target tokens, or tokens of the texts if there are no targets), or None.
        max_steps: Total number of updates, for the remaining time, or None.
        max_minutes: Total time in minutes, for the remaining time, or None.
        seconds: Positive float, time between two lines.
        report: Optional function, called with a dict of the printed numbers.
        stream: Text stream to print to. Defaults to standard error.
        initial_step: Number of updates before this `fit`.
        initial_minutes: Minutes of training before this `fit`.

    Example:

    >>> callback = Progress(max_steps=1000)
    """

    def __init__(
        self,
        tokens: Callable[[], int] | None = None,
        max_steps: int | None = None,
        max_minutes: float | None = None,
        seconds: float = 10.0,
        report: Callable[[dict[str, float]], Any] | None = None,
        stream: TextIO | None = None,
        initial_step: int = 0,
        initial_minutes: float = 0.0,
    ) -> None:
        super().__init__(initial_step)
        self.tokens = tokens
        self.max_steps = max_steps
        self.max_minutes = max_minutes
        self.seconds = seconds
        self.report = report
        self.stream = stream or sys.stderr
        self._first_step: int | None = None
        self._initial_minutes = initial_minutes
        self._line_open = False
        self._width = 0

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        self._first_step = None
        self.restart_clock()
        self._start = self._last
        self._write("compiling the training step ...", keep=False)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self._first_step is None:
            # Exclude the compilation from the tokens per second.
            self.restart_clock()
            self._first_step, self._first_end = self.step, self._last
            return
        now = time.monotonic()
        if now - self._last >= self.seconds:
            self._print(now, self._recent_loss(logs))

    def on_train_end(self, logs: Any = None) -> None:
        self.finish_line()

    def finish_line(self) -> None:
        """Ends the line that is updated in place, so that other output can follow."""
        if self._line_open:
            self.stream.write("\n")
            self.stream.flush()
            self._line_open, self._width = False, 0

    def restart_clock(self) -> None:
        """Excludes the time since the last progress line from the tokens per second."""
        self._last = time.monotonic()
        self._last_tokens = self.tokens() if self.tokens else 0

    def _print(self, now: float, loss: float | None) -> None:
        rate = float(backend.to_numpy(self.model.optimizer.learning_rate))
        numbers = {"step": self.step, "minutes": self._minutes(now), "learning_rate": rate}
        parts = [f"step {self.step:,}"]
        if loss is not None:
            numbers["loss"] = float(loss)
            parts.append(f"loss {loss:.3f}")
        parts.append(f"rate {rate:.2e}")
        if self.tokens:
            tokens = self.tokens()
            numbers["target_tokens_per_second"] = (tokens - self._last_tokens) / (now - self._last)
            parts.append(f"{numbers['target_tokens_per_second']:,.0f} tokens/s")
            self._last_tokens = tokens
        parts.append(f"{numbers['minutes']:.1f} min")
        minutes = self._minutes_left(now)
        if minutes is not None:
            parts.append(f"about {minutes:.1f} min left")
        self._last = now
        self._write(" | ".join(parts))
        if self.report:
            self.report(numbers)

    def _minutes(self, now: float) -> float:
        return self._initial_minutes + (now - self._start) / 60

    def _minutes_left(self, now: float) -> float | None:
        estimates = []
        if self.max_minutes is not None:
            estimates.append(self.max_minutes - self._minutes(now))
        updates = self.step - (self._first_step or 0)
        if self.max_steps is not None and updates:
            minutes_per_update = (now - self._first_end) / 60 / updates
            estimates.append(minutes_per_update * (self.max_steps - self.step))
        return max(0.0, min(estimates)) if estimates else None

    def _write(self, line: str, keep: bool = True) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{line}")
            self._line_open = True
        elif type(self.stream).__module__.startswith("ipykernel."):
            # Notebooks move to the begin of the line, but not all of them erase it.
            self.stream.write(f"\r{line:<{self._width}}")
            self._width, self._line_open = len(line), True
        elif keep:
            self.stream.write(line + "\n")
        self.stream.flush()
