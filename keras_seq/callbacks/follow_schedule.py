"""A number of the model that follows a schedule."""

from keras_seq.callbacks.counting_callback import CountingCallback


class FollowSchedule(CountingCallback):
    """Sets a variable before each update: the weight of a KL term, a rate of sampling.

    `keras_seq.schedules.rates` has the schedules of the field. The value depends on
    the number of the update alone, so a `fit` that goes on with `initial_step` goes
    on with the value. Where `compile` was told `steps_per_execution`, all updates of
    an execution are made with the value for the first of them.

    Args:
        variable: A scalar `keras.Variable` that the model or its loss reads. On JAX
            it must be one that the model tracks, an attribute of one of its layers.
        schedule: Function of the updates done so far that gives the value.
        initial_step: Updates done before this `fit`.

    Raises:
        TypeError: If `schedule` cannot be called.

    Example:

    >>> import keras
    >>> from keras_seq.schedules.rates import linear_annealing
    >>> weight = keras.Variable(0.0, trainable=False)
    >>> callback = FollowSchedule(weight, linear_annealing(steps=1000))
    """

    def __init__(self, variable, schedule, initial_step=0):
        super().__init__(initial_step)
        if not callable(schedule):
            raise TypeError(f"`schedule` must be a function of the update, received {schedule!r}.")
        self.variable = variable
        self.schedule = schedule

    def on_train_batch_begin(self, batch, logs=None):
        # On JAX `fit` holds the variables itself; to ask for the model puts them back into it,
        # and makes `fit` take them from there again.
        _ = self.model
        self.variable.assign(self.schedule(self.step))
