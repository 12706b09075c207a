"""Stops a training whose gradients are not finite."""

from collections.abc import Callable
from typing import Any

from keras_seq import backend
from keras_seq.callbacks.counting_callback import CountingCallback, check_positive_integers


class NanGuard(CountingCallback):
    """Stops `fit` after a number of consecutive updates that `SkippingAdam` skips.

    `fit` stops exactly at the last of `limit` consecutive skipped updates. The callback reads the
    counter of the optimizer only when it can have reached the limit: every `limit` updates, and
    more often while updates are skipped. A `fit` that resumes from a checkpoint with the variables
    of the optimizer stops at the same update as an uninterrupted one. With `steps_per_execution` of
    N in `compile`, `fit` stops after at most `limit` + N - 1 skipped updates.

    Args:
        limit: Positive integer, consecutive skipped updates after which `fit` stops.
        report: Optional function, called with the total number of skipped updates when it grows.
        on_limit: Optional function, called with the number of consecutive skipped updates instead
            of stopping `fit`.

    Raises:
        ValueError: If `limit` is not a positive integer; in `fit`, if the optimizer does not count
            skipped updates.

    Example:

    >>> callback = NanGuard(limit=10, report=lambda count: print(count, "updates skipped"))
    """

    def __init__(
        self,
        limit: int = 10,
        report: Callable[[int], Any] | None = None,
        on_limit: Callable[[int], Any] | None = None,
    ) -> None:
        super().__init__()
        check_positive_integers(limit=limit)
        self.limit = limit
        self.report = report
        self.on_limit = on_limit
        self._reported = 0
        self._next_check = 0

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        optimizer = self.model.optimizer
        if not hasattr(optimizer, "skipped_in_row"):
            raise ValueError(
                f"NanGuard needs an optimizer that counts what it skips, such as SkippingAdam; "
                f"received {type(optimizer).__name__}."
            )
        self._reported = _number(optimizer.skipped)
        self._next_check = self.step + max(1, self.limit - _number(optimizer.skipped_in_row))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.step >= self._next_check:
            self.check()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.check()

    def check(self) -> None:
        """Reads the optimizer's counters of skipped updates, reports them, and may stop `fit`."""
        self._sync_model()
        optimizer = self.model.optimizer
        skipped = _number(optimizer.skipped)
        if skipped > self._reported:
            self._reported = skipped
            if self.report:
                self.report(skipped)
        in_row = _number(optimizer.skipped_in_row)
        # The earliest update at which `skipped_in_row` can be a multiple of `limit`.
        self._next_check = self.step + self.limit - in_row % self.limit
        if in_row >= self.limit:
            if self.on_limit:
                self.on_limit(in_row)
            else:
                self.model.stop_training = True


def _number(variable: Any) -> int:
    # The variables are None until `fit` builds the optimizer with the first batch.
    return 0 if variable is None else int(backend.to_numpy(variable))
