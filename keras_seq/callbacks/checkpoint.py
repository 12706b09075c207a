"""Saves at regular updates."""

from keras_seq.callbacks.counting_callback import CountingCallback


class Checkpoint(CountingCallback):
    """Calls a function every so many updates, and once at the end.

    Args:
        save: Called with the number of updates done.
        every: Positive integer, updates between two calls.
        initial_step: Updates done before this `fit`.

    Raises:
        ValueError: If `every` is not a positive integer.

    Example:

    >>> callback = Checkpoint(save=lambda step: print("saved", step), every=500)
    """

    def __init__(self, save, every, initial_step=0):
        super().__init__(initial_step)
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"`every` must be a positive integer, received {every!r}.")
        self.save = save
        self.every = every
        self._saved = initial_step

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._due(self.every):
            self._save()

    def on_epoch_end(self, epoch, logs=None):
        # Not only at the end of `fit`, where the optimizer's average has replaced the weights.
        if self.model.stop_training or epoch + 1 == self.params["epochs"]:
            self.on_train_end()

    def on_train_end(self, logs=None):
        if self.step != self._saved:
            self._save()

    def _save(self):
        # On JAX `fit` holds the weights itself; to ask for the model puts them back into it.
        _ = self.model
        self.save(self.step)
        self._saved = self.step
