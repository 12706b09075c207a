"""Keras callbacks with gradient accumulation: several batches per update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keras_seq.callbacks.counting_callback import check_positive_integers


class OncePerUpdate(keras.callbacks.CallbackList):
    """Calls other callbacks once per update if an update consists of several batches.

    If an optimizer accumulates the gradients of N batches, `fit` still calls its callbacks for each
    batch. The callbacks in this list are called before the first and after the last of the N
    batches, with the index of the update in the epoch. With `steps_per_execution` in `compile`,
    they are called after complete updates.

    Args:
        callbacks: Keras callbacks.
        micro_batches: Positive integer N, batches per update.

    Raises:
        ValueError: If `micro_batches` is not a positive integer; in `fit`, if the number of steps
            per epoch is not a multiple of it, or `steps_per_execution` is neither a multiple nor a
            divisor of it.

    Example:

    >>> from keras_seq.callbacks import Checkpoint
    >>> every_update = Checkpoint(save=lambda step: print("saved", step), every=500)
    >>> callback = OncePerUpdate([every_update], micro_batches=4)
    """

    def __init__(self, callbacks: Sequence[keras.callbacks.Callback], micro_batches: int) -> None:
        check_positive_integers(micro_batches=micro_batches)
        self.micro_batches = micro_batches
        super().__init__(list(callbacks))

    def set_params(self, params: dict[str, Any]) -> None:
        steps = (params or {}).get("steps")
        if steps is not None:
            if steps % self.micro_batches:
                raise ValueError(
                    f"An epoch has {steps} batches, expected a multiple of `micro_batches` "
                    f"({self.micro_batches}): give `fit` such a `steps_per_epoch`."
                )
            params = {**params, "steps": steps // self.micro_batches}
            params["micro_batches"] = self.micro_batches
        super().set_params(params)

    def on_train_begin(self, logs: Any = None) -> None:
        size = getattr(self.model, "steps_per_execution", 1)
        if size % self.micro_batches and self.micro_batches % size:
            raise ValueError(
                f"`fit` runs {size} batches in an execution, and {self.micro_batches} make an "
                "update: compile the model with a `steps_per_execution` that is a multiple or a "
                "divisor of `micro_batches`."
            )
        super().on_train_begin(logs)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch % self.micro_batches == 0:
            super().on_train_batch_begin(batch // self.micro_batches, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if (batch + 1) % self.micro_batches == 0:
            super().on_train_batch_end(batch // self.micro_batches, logs)
