"""Stops a training before the process reaches its time limit."""

import datetime
import time
from collections.abc import Callable
from typing import Any

import keras


class StopAtTime(keras.callbacks.Callback):
    """Stops `fit` after the update during which a deadline passes.

    Use it where a process has limited time, such as in a batch queue. Callbacks that save at the
    end of `fit` then have time to do so, and the next process resumes. Leave enough time for saving
    and for a validation. `StopAtLimit` limits the time of the training over all processes instead.

    Args:
        minutes: Positive float, minutes from the creation of this object, or None.
        at: A `datetime.datetime` with or without time zone, the deadline by the clock of this
            machine, or None.
        on_time: Optional function, called instead of stopping `fit`.

    Attributes:
        reached: Whether the deadline has passed.

    Raises:
        ValueError: If neither or both of `minutes` and `at` are given, or `minutes` is not
            positive.
        TypeError: If `at` is not a `datetime.datetime`.

    Example:

    >>> callback = StopAtTime(minutes=230)
    >>> callback = StopAtTime(at=datetime.datetime(2030, 1, 1, 5, 30))
    """

    def __init__(
        self,
        minutes: float | None = None,
        at: datetime.datetime | None = None,
        on_time: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__()
        if (minutes is None) == (at is None):
            received = f"minutes={minutes!r} and at={at!r}"
            raise ValueError(f"Give either `minutes` or `at`, received {received}.")
        if minutes is not None and not minutes > 0:
            raise ValueError(f"`minutes` must be positive, received {minutes!r}.")
        if at is not None and not isinstance(at, datetime.datetime):
            raise TypeError(f"`at` must be a datetime.datetime, received {at!r}.")
        self.on_time = on_time
        # Minutes are measured with the monotonic clock, because the system clock may be adjusted.
        self._clock = time.monotonic if at is None else time.time
        self._end = time.monotonic() + 60 * (minutes or 0) if at is None else at.timestamp()

    @property
    def reached(self) -> bool:
        return self._clock() >= self._end

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.reached:
            if self.on_time:
                self.on_time()
            else:
                self.model.stop_training = True
