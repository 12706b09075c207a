"""Stops a training before its time on a machine is over."""

import datetime
import time

import keras


class StopAtTime(keras.callbacks.Callback):
    """Ends `fit` after the update within which a moment passes.

    For machines that are lent for a time, such as by a batch queue: what saves at the
    end of `fit` then does so in peace, and the next process goes on. Unlike the time of
    `StopAtLimit`, which is that of the training over all its processes, this is of
    one process. Leave enough of it for what comes after: saving, a validation.

    Args:
        minutes: Positive float, minutes from when this object is made, or None.
        at: A `datetime.datetime` with or without time zone, the moment by the
            clock of this machine, or None.
        on_time: Optional function, called in place of stopping `fit`.

    Attributes:
        reached: Whether the moment has passed.

    Raises:
        ValueError: If neither or both of `minutes` and `at` are given, or `minutes` is
            not positive.
        TypeError: If `at` is not a `datetime.datetime`.

    Example:

    >>> callback = StopAtTime(minutes=230)
    >>> callback = StopAtTime(at=datetime.datetime(2030, 1, 1, 5, 30))
    """

    def __init__(self, minutes=None, at=None, on_time=None):
        super().__init__()
        if (minutes is None) == (at is None):
            raise ValueError(
                f"Give either `minutes` or `at`, received minutes={minutes!r} and at={at!r}."
            )
        if minutes is not None and not minutes > 0:
            raise ValueError(f"`minutes` must be positive, received {minutes!r}.")
        if at is not None and not isinstance(at, datetime.datetime):
            raise TypeError(f"`at` must be a datetime.datetime, received {at!r}.")
        self.on_time = on_time
        # The clock on the wall may be set while minutes pass; the other one goes on.
        self._clock = time.monotonic if at is None else time.time
        self._end = time.monotonic() + 60 * minutes if at is None else at.timestamp()

    @property
    def reached(self):
        return self._clock() >= self._end

    def on_train_batch_end(self, batch, logs=None):
        if self.reached:
            if self.on_time:
                self.on_time()
            else:
                self.model.stop_training = True
