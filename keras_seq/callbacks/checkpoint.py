"""Saves at regular intervals."""

from collections.abc import Callable
from typing import Any

from keras_seq.callbacks.counting_callback import PeriodicCallback


class Checkpoint(PeriodicCallback):
    """Calls a function every N updates and at the end of `fit`.

    Args:
        save: Function that takes the number of updates so far.
        every: Positive integer N, updates between two calls.
        initial_step: Number of updates before this `fit`.

    Raises:
        ValueError: If `every` is not a positive integer.

    Example:

    >>> callback = Checkpoint(save=lambda step: print("saved", step), every=500)
    """

    def __init__(self, save: Callable[[int], Any], every: int, initial_step: int = 0) -> None:
        super().__init__(every, initial_step)
        self.save = save
        self._acted_at = initial_step

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        # At the end of `fit`, the optimizer has already replaced the weights with their average.
        if self.model.stop_training or epoch + 1 == self.params["epochs"]:
            self.on_train_end()

    def _act(self) -> None:
        self.save(self.step)
