"""Sets a variable by a schedule."""

from collections.abc import Callable
from typing import Any

from keras_seq.callbacks.counting_callback import CountingCallback


class FollowSchedule(CountingCallback):
    """Sets a variable before each update, such as the weight of a KL term or a sampling rate.

    `keras_seq.schedules.rates` has common schedules. The value depends only on the number of
    updates, so a `fit` that resumes with `initial_step` continues the schedule. With
    `steps_per_execution` in `compile`, all updates of an execution use the value of the first.

    Args:
        variable: A scalar `keras.Variable` that the model or its loss reads. On JAX, the model must
            track the variable as an attribute of one of its layers.
        schedule: Function that takes the number of updates so far and returns the value.
        initial_step: Number of updates before this `fit`.

    Raises:
        TypeError: If `schedule` is not callable.

    Example:

    >>> import keras
    >>> from keras_seq.schedules.rates import linear_annealing
    >>> weight = keras.Variable(0.0, trainable=False)
    >>> callback = FollowSchedule(weight, linear_annealing(steps=1000))
    """

    def __init__(
        self, variable: Any, schedule: Callable[[int], Any], initial_step: int = 0
    ) -> None:
        super().__init__(initial_step)
        if not callable(schedule):
            raise TypeError(f"`schedule` must be a function of the update, received {schedule!r}.")
        self.variable = variable
        self.schedule = schedule

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        # On JAX, this call also makes `fit` read the new value of the variable.
        self._sync_model()
        self.variable.assign(self.schedule(self.step))
