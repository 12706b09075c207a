"""How callbacks count updates."""

import keras


class CountingCallback(keras.callbacks.Callback):
    """What the callbacks that count updates have in common; abstract.

    `fit` calls its callbacks after each execution, which is as many updates as
    `compile` was told by `steps_per_execution`. All of them are counted, and what is
    due at one of them is done after the last.

    Args:
        initial_step: Updates done before this `fit`.

    Attributes:
        step: Updates done.

    Raises:
        ValueError: In `fit`, if there are several updates in an execution and an epoch is not a
            multiple of that.
    """

    def __init__(self, initial_step=0):
        super().__init__()
        self.step = initial_step
        self._step_before = initial_step
        self._batches_of_epoch = 0

    def on_train_begin(self, logs=None):
        size = getattr(self.model, "steps_per_execution", 1)
        params = self.params or {}
        steps = params.get("steps")
        if steps is not None:
            # `OncePerUpdate` gives the number of updates.
            steps *= params.get("micro_batches", 1)
        # Keras says of the last execution of an epoch that it was as long as the others.
        if size > 1 and (steps is None or steps % size):
            raise ValueError(
                f"{type(self).__name__} cannot count the updates of an epoch of "
                f"{'unknown length' if steps is None else f'{steps} batches'} that are made "
                f"{size} at a time: compile the model with a `steps_per_execution` that divides "
                "the number of batches, and give `fit` `steps_per_epoch` where it cannot know it."
            )

    def on_epoch_begin(self, epoch, logs=None):
        self._batches_of_epoch = 0

    def on_train_batch_end(self, batch, logs=None):
        self._step_before = self.step
        # The number is that of the last batch of the execution.
        self.step += batch + 1 - self._batches_of_epoch
        self._batches_of_epoch = batch + 1

    def _due(self, every):
        """Whether a multiple of `every` is among the updates of the last execution."""
        return self.step // every > self._step_before // every
