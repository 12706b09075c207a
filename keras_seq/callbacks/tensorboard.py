"""Curves, sample translations and attention pictures for TensorBoard."""

import time

import keras

from keras_seq.callbacks.attention_snapshots import attention_picture
from keras_seq.callbacks.counting_callback import CountingCallback
from keras_seq.callbacks.recent_loss import RecentLoss


class TensorBoard(CountingCallback):
    """Writes what a sequence model does while it learns into event files.

    Every `every` updates the loss since the last look, the learning rate, updates and
    target tokens a second; at the end of each epoch what `fit` validates. Every
    `show_every` updates, and at the end, samples as text and attention as pictures.
    Scores of decoded text come from `Validation(..., report=log.write)`. Unlike
    `keras.callbacks.TensorBoard` it needs no TensorFlow.

    Args:
        log: Where all goes; see `keras_seq.training.EventLog`.
        every: Positive integer, updates between two points of a curve.
        tokens: Function without arguments that gives the number of target
            tokens trained on so far, or None.
        samples: Function without arguments that gives a list of samples, each the source
            and the output, or the source, the reference and the output, or None.
        attend: Function without arguments that gives a list of float arrays `(T, S)` in
            [0, 1], as for `AttentionSnapshots`, or None.
        show_every: Positive integer, updates between two looks at samples and attention.
        initial_step: Updates done before this `fit`.

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
        log,
        every=100,
        tokens=None,
        samples=None,
        attend=None,
        show_every=1000,
        initial_step=0,
    ):
        super().__init__(initial_step)
        for name, value in (("every", every), ("show_every", show_every)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
        if not log.writes:
            raise ImportError(
                "The log writes nothing: TensorBoard is not installed (pip install tensorboard), "
                "or the log is closed or not enabled."
            )
        self.log = log
        self.every = every
        self.tokens = tokens
        self.samples = samples
        self.attend = attend
        self.show_every = show_every
        self._shown = initial_step
        self._recent_loss = RecentLoss()

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self._look()

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        self._recent_loss.begin_epoch()

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._due(self.every):
            self._write_scalars(self._recent_loss(batch, (logs or {}).get("loss"), self.params))
        if self._due(self.show_every):
            self._show()

    def on_epoch_end(self, epoch, logs=None):
        values = {
            key.removeprefix("val_"): value
            for key, value in (logs or {}).items()
            if key.startswith("val_")
        }
        if values:
            self.log.write(self.step, values, group="validation/")

    def on_train_end(self, logs=None):
        if self.step != self._shown:
            self._show()

    def _look(self):
        self._last = (time.monotonic(), self.step, self.tokens() if self.tokens else 0)

    def _write_scalars(self, loss):
        (before, step, tokens), _ = self._last, self._look()
        seconds = max(self._last[0] - before, 1e-9)
        rate = keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)
        values = {"learning_rate": float(rate), "steps_per_second": (self.step - step) / seconds}
        if loss is not None:
            values["loss"] = float(loss)
        if self.tokens:
            values["target_tokens_per_second"] = (self._last[2] - tokens) / seconds
        self.log.write(self.step, values, group="training/")

    def _show(self):
        # On JAX `fit` holds the weights itself; to ask for the model puts them back into it.
        _ = self.model
        self._shown = self.step
        if self.samples:
            self.log.write_samples(self.step, self.samples())
        if self.attend:
            pictures = [attention_picture(weights) for weights in self.attend()]
            self.log.write_pictures(self.step, "attention", pictures)
        # Of the next rates, this time and what was trained before it are left out.
        self._look()
