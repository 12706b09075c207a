"""Curves, sample outputs and attention images for TensorBoard."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_seq.callbacks.attention_snapshots import attention_picture
from keras_seq.callbacks.counting_callback import LossCallback, check_positive_integers


class TensorBoard(LossCallback):
    """Writes the progress of a sequence model to event files for TensorBoard.

    Every `every` updates, this callback writes the loss since the last point, the learning rate,
    and the updates and target tokens per second. At the end of each epoch, it writes the validation
    results of `fit`. Every `show_every` updates and at the end, it writes sample outputs as text
    and attention as images. For scores of decoded text, use `Validation(..., report=log.write)`.
    Unlike `keras.callbacks.TensorBoard`, this callback does not need TensorFlow.

    Args:
        log: The event log; see `keras_seq.training.EventLog`.
        every: Positive integer, updates between two points of a curve.
        tokens: Function without arguments that returns the number of target tokens trained on so
            far, or None.
        samples: Function without arguments that returns a list of samples, or None. A sample is a
            tuple (source, output) or (source, reference, output).
        attend: Function without arguments that returns a list of float arrays `(T, S)` in [0, 1],
            as for `AttentionSnapshots`, or None.
        show_every: Positive integer, updates between two displays of samples and attention.
        initial_step: Number of updates before this `fit`.

    Raises:
        ImportError: If TensorBoard is not installed.
        ValueError: If `every` or `show_every` is not a positive integer.

    Example:

    >>> import tempfile
    >>> from keras_seq.training import EventLog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     callback = TensorBoard(EventLog(folder), every=100)
    """

    def __init__(
        self,
        log: Any,
        every: int = 100,
        tokens: Callable[[], int] | None = None,
        samples: Callable[[], Sequence[Sequence[str]]] | None = None,
        attend: Callable[[], Sequence[Any]] | None = None,
        show_every: int = 1000,
        initial_step: int = 0,
    ) -> None:
        super().__init__(initial_step)
        check_positive_integers(every=every, show_every=show_every)
        if not log.writes:
            raise ImportError(
                "The log writes nothing: TensorBoard is not installed (python -m pip install "
                "'keras-seq[tensorboard]'), or the log is closed or not enabled."
            )
        self.log = log
        self.every = every
        self.tokens = tokens
        self.samples = samples
        self.attend = attend
        self.show_every = show_every
        self._last_shown = initial_step

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        self._restart_clock()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self._due(self.every):
            self._write_scalars(self._recent_loss(logs))
        if self._due(self.show_every):
            self._show()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        items = (logs or {}).items()
        values = {key.removeprefix("val_"): value for key, value in items if key.startswith("val_")}
        if values:
            self.log.write(self.step, values, group="validation/")

    def on_train_end(self, logs: Any = None) -> None:
        if self.step != self._last_shown:
            self._show()

    def _restart_clock(self) -> None:
        self._last = (time.monotonic(), self.step, self.tokens() if self.tokens else 0)

    def _write_scalars(self, loss: float | None) -> None:
        before, step, tokens = self._last
        self._restart_clock()
        seconds = max(self._last[0] - before, 1e-9)
        rate = keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)
        values = {"learning_rate": float(rate), "steps_per_second": (self.step - step) / seconds}
        if loss is not None:
            values["loss"] = float(loss)
        if self.tokens:
            values["target_tokens_per_second"] = (self._last[2] - tokens) / seconds
        self.log.write(self.step, values, group="training/")

    def _show(self) -> None:
        self._sync_model()
        self._last_shown = self.step
        if self.samples:
            self.log.write_samples(self.step, self.samples())
        if self.attend:
            pictures = [attention_picture(weights) for weights in self.attend()]
            self.log.write_pictures(self.step, "attention", pictures)
        # The time for samples and pictures does not count for the next rates.
        self._restart_clock()
