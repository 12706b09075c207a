"""Stops a training after so many updates or minutes."""

import time

from keras_seq.callbacks.counting_callback import CountingCallback


class StopAtLimit(CountingCallback):
    """Stops `fit` after a number of updates or a time, whichever comes first.

    Args:
        max_steps: Positive integer, updates in all, or None.
        max_minutes: Positive float, minutes of wall time since the training
            began, or None.
        initial_step: Updates done before this `fit`.
        initial_minutes: Minutes trained before this `fit`.

    Raises:
        ValueError: If a limit is not positive.

    Example:

    >>> callback = StopAtLimit(max_minutes=30)
    """

    def __init__(self, max_steps=None, max_minutes=None, initial_step=0, initial_minutes=0.0):
        super().__init__(initial_step)
        for name, value in (("max_steps", max_steps), ("max_minutes", max_minutes)):
            if value is not None and value <= 0:
                raise ValueError(f"`{name}` must be positive, received {value!r}.")
        self.max_steps = max_steps
        self.max_minutes = max_minutes
        self.initial_minutes = initial_minutes
        self._start = None

    def reached(self):
        """Whether `fit` has nothing left to do."""
        if self.max_steps is not None and self.step >= self.max_steps:
            return True
        since = 0.0 if self._start is None else (time.monotonic() - self._start) / 60
        return self.max_minutes is not None and self.initial_minutes + since >= self.max_minutes

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self._start = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self.reached():
            self.model.stop_training = True
