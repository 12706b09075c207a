"""Stops when gradients are no longer numbers."""

from keras_seq import backend
from keras_seq.callbacks.counting_callback import CountingCallback


class NanGuard(CountingCallback):
    """Watches the updates that `SkippingAdam` skips, and stops after too many in a row.

    `limit` in a row are never missed, and stop `fit` at the last of them. The optimizer's
    counter is looked at when it can have come to the limit: every `limit` updates, more often
    only while some are skipped. So a `fit` that goes on from a checkpoint with the
    optimizer's variables stops where it would have without. With `steps_per_execution` of N in
    `compile` it is `limit` + N - 1 that are never missed.

    Args:
        limit: Positive integer, updates skipped in a row after which `fit` is
            stopped.
        report: Optional function, called with the number of updates skipped so
            far whenever there are more.
        on_limit: Optional function, called with the number of updates skipped in
            a row in place of stopping `fit`.

    Raises:
        ValueError: If `limit` is not a positive integer, or `fit` has an optimizer that
            does not count.

    Example:

    >>> callback = NanGuard(limit=10, report=lambda count: print(count, "updates skipped"))
    """

    def __init__(self, limit=10, report=None, on_limit=None):
        super().__init__()
        if not isinstance(limit, int) or limit < 1:
            raise ValueError(f"`limit` must be a positive integer, received {limit!r}.")
        self.limit = limit
        self.report = report
        self.on_limit = on_limit
        self._reported = 0
        self._next_look = 0

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        optimizer = self.model.optimizer
        if not hasattr(optimizer, "skipped_in_row"):
            raise ValueError(
                f"NanGuard needs an optimizer that counts what it skips, such as SkippingAdam; "
                f"received {type(optimizer).__name__}."
            )
        # `fit` builds it with the first batch.
        self._reported = 0 if optimizer.skipped is None else _number(optimizer.skipped)
        in_row = 0 if optimizer.skipped is None else _number(optimizer.skipped_in_row)
        self._next_look = self.step + max(1, self.limit - in_row)

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self.step >= self._next_look:
            self.look()

    def on_epoch_end(self, epoch, logs=None):
        self.look()

    def look(self):
        """Looks at the counters now."""
        # On JAX `fit` holds the variables itself; to ask for the model puts them back into it.
        optimizer = self.model.optimizer
        skipped = _number(optimizer.skipped)
        if skipped > self._reported:
            self._reported = skipped
            if self.report:
                self.report(skipped)
        in_row = _number(optimizer.skipped_in_row)
        # Not before can there be as many as the limit, or as many more.
        self._next_look = self.step + self.limit - in_row % self.limit
        if in_row >= self.limit:
            if self.on_limit:
                self.on_limit(in_row)
            else:
                self.model.stop_training = True


def _number(variable):
    return int(backend.to_numpy(variable))
