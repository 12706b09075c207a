"""A line of progress on standard error."""

import sys
import time

from keras_seq import backend
from keras_seq.callbacks.counting_callback import CountingCallback
from keras_seq.callbacks.recent_loss import RecentLoss


class Progress(CountingCallback):
    """Prints step, loss, learning rate, tokens a second and time left.

    On a terminal one line is rewritten; into a file a line is written every
    `seconds`. The first update, which compiles the model, is announced.

    Args:
        tokens: Function without arguments that gives the number of tokens
            trained on so far, or None: of targets where there are any, else of the texts.
        max_steps: Updates in all, for the time left, or None.
        max_minutes: Minutes in all, for the time left, or None.
        seconds: Positive float, time between two lines.
        report: Optional function, called with a dict of the numbers printed.
        stream: Where to print; standard error by default.
        initial_step: Updates done before this `fit`.
        initial_minutes: Minutes trained before this `fit`.

    Example:

    >>> callback = Progress(max_steps=1000)
    """

    def __init__(
        self,
        tokens=None,
        max_steps=None,
        max_minutes=None,
        seconds=10.0,
        report=None,
        stream=None,
        initial_step=0,
        initial_minutes=0.0,
    ):
        super().__init__(initial_step)
        self.tokens = tokens
        self.max_steps = max_steps
        self.max_minutes = max_minutes
        self.seconds = seconds
        self.report = report
        self.stream = stream or sys.stderr
        self._first_step = None
        self._initial_minutes = initial_minutes
        self._line_open = False
        self._recent_loss = RecentLoss()

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self._first_step = None
        self._start = self._last = time.monotonic()
        self._last_tokens = self.tokens() if self.tokens else 0
        self._write("compiling the training step ...", keep=False)

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        self._recent_loss.begin_epoch()

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        now = time.monotonic()
        if self._first_step is None:
            # The rate of tokens shall not include the compilation.
            self._last, self._last_tokens = now, self.tokens() if self.tokens else 0
            self._first_step, self._first_end = self.step, now
        elif now - self._last >= self.seconds:
            self._print(now, self._recent_loss(batch, (logs or {}).get("loss"), self.params))

    def on_train_end(self, logs=None):
        self.finish_line()

    def finish_line(self):
        """Ends the line that is being rewritten, before something else is printed."""
        if self._line_open:
            self.stream.write("\n")
            self.stream.flush()
            self._line_open = False

    def restart_clock(self):
        """Leaves the time since the last line out of the rate: it went into something else."""
        self._last = time.monotonic()
        self._last_tokens = self.tokens() if self.tokens else 0

    def _print(self, now, loss):
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
        left = self._minutes_left(now)
        if left is not None:
            parts.append(f"about {left:.1f} min left")
        self._last = now
        self._write(" | ".join(parts))
        if self.report:
            self.report(numbers)

    def _minutes(self, now):
        return self._initial_minutes + (now - self._start) / 60

    def _minutes_left(self, now):
        left = []
        if self.max_minutes is not None:
            left.append(self.max_minutes - self._minutes(now))
        done = self.step - self._first_step
        if self.max_steps is not None and done:
            pace = (now - self._first_end) / 60 / done
            left.append(pace * (self.max_steps - self.step))
        return max(0.0, min(left)) if left else None

    def _write(self, line, keep=True):
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{line}")
            self._line_open = True
        elif keep:
            self.stream.write(line + "\n")
        self.stream.flush()
