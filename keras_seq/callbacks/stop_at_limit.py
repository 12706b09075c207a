"""Stops a training after a number of updates or minutes."""

import time
from typing import Any

from keras_seq.callbacks.counting_callback import CountingCallback


class StopAtLimit(CountingCallback):
    """Stops `fit` after a number of updates or a time, whichever comes first.

    Args:
        max_steps: Positive integer, total number of updates, or None.
        max_minutes: Positive float, total wall time in minutes, or None.
        initial_step: Number of updates before this `fit`.
        initial_minutes: Minutes of training before this `fit`.

    Raises:
        ValueError: If a limit is not positive.

    Example:

    >>> callback = StopAtLimit(max_minutes=30)
    """

    def __init__(
        self,
        max_steps: int | None = None,
        max_minutes: float | None = None,
        initial_step: int = 0,
        initial_minutes: float = 0.0,
    ) -> None:
        super().__init__(initial_step)
        for name, value in (("max_steps", max_steps), ("max_minutes", max_minutes)):
            if value is not None and value <= 0:
                raise ValueError(f"`{name}` must be positive, received {value!r}.")
        self.max_steps = max_steps
        self.max_minutes = max_minutes
        self.initial_minutes = initial_minutes
        self._start: float | None = None

    def reached(self) -> bool:
        """Returns True if a limit is reached."""
        if self.max_steps is not None and self.step >= self.max_steps:
            return True
        minutes = 0.0 if self._start is None else (time.monotonic() - self._start) / 60
        return self.max_minutes is not None and self.initial_minutes + minutes >= self.max_minutes

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        self._start = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.reached():
            self.model.stop_training = True
