"""The base classes of callbacks that count updates."""

from typing import Any

import keras

from keras_seq import backend


class CountingCallback(keras.callbacks.Callback):
    """Abstract base class of callbacks that count updates.

    `fit` calls its callbacks after each execution, which makes `steps_per_execution` updates. The
    callback counts all of them. An action that is due at one of them happens after the last. `fit`
    raises ValueError if the number of updates per execution does not divide the batches of an
    epoch.
    """

    def __init__(self, initial_step: int = 0) -> None:
        super().__init__()
        self.step = initial_step
        self._step_before = initial_step
        self._batches_of_epoch = 0

    def on_train_begin(self, logs: Any = None) -> None:
        size = getattr(self.model, "steps_per_execution", 1)
        params = self.params or {}
        steps = params.get("steps")
        if steps is not None:
            # `OncePerUpdate` passes the number of updates.
            steps *= params.get("micro_batches", 1)
        # Keras reports the last execution of an epoch as if it were complete.
        if size > 1 and (steps is None or steps % size):
            raise ValueError(
                f"{type(self).__name__} cannot count the updates of an epoch of "
                f"{'unknown length' if steps is None else f'{steps} batches'} that are made "
                f"{size} at a time: compile the model with a `steps_per_execution` that divides "
                "the number of batches, and give `fit` `steps_per_epoch` where it cannot know it."
            )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._batches_of_epoch = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._step_before = self.step
        # `batch` is the index of the last batch of the execution.
        self.step += batch + 1 - self._batches_of_epoch
        self._batches_of_epoch = batch + 1

    def _due(self, every: int) -> bool:
        """Returns True if the last execution passed a multiple of `every` updates."""
        return self.step // every > self._step_before // every

    def _sync_model(self) -> None:
        """Copies the weights of a running `fit` to the model; needed only on JAX."""
        # Reading the attribute `model` copies the weights.
        _ = self.model


class LossCallback(CountingCallback):
    """Abstract base class of callbacks that report the mean loss since their last report."""

    _last_loss = (0.0, 0.0)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_begin(epoch, logs)
        self._last_loss = (0.0, 0.0)

    def _recent_loss(self, logs: Any) -> float | None:
        """The mean loss of the rows since the last call, None if `fit` reports no loss.

        `fit` reports the mean since the start of the epoch, in which each batch counts by its
        number of rows. The sums behind this mean give the mean of the last batches.
        """
        mean = (logs or {}).get("loss")
        trackers = [metric for metric in self.model.metrics if metric.name == "loss"]
        if mean is None or not trackers:
            return mean
        total, rows = (
            float(backend.to_numpy(variable)) for variable in (trackers[0].total, trackers[0].count)
        )
        last_total, last_rows = self._last_loss
        self._last_loss = (total, rows)
        return (total - last_total) / (rows - last_rows) if rows > last_rows else mean


class PeriodicCallback(CountingCallback):
    """Abstract base class of callbacks that act every N updates and, optionally, at the end."""

    _acts_at_end = True

    def __init__(self, every: int, initial_step: int = 0) -> None:
        super().__init__(initial_step)
        check_positive_integers(every=every)
        self.every = every
        self._acted_at: int | None = None

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self._due(self.every):
            self._act_now()

    def on_train_end(self, logs: Any = None) -> None:
        if self._acts_at_end and self.step != self._acted_at:
            self._act_now()

    def _act_now(self) -> None:
        self._sync_model()
        self._act()
        self._acted_at = self.step

    def _act(self) -> None:
        raise NotImplementedError


def check_positive_integers(**values: Any) -> None:
    """Raises a ValueError for the first argument that is not a positive integer."""
    for name, value in values.items():
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
