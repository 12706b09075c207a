"""The mean loss of the most recent updates."""

from collections.abc import Mapping
from typing import Any


class RecentLoss:
    """Converts the mean loss since the start of an epoch to the mean loss since the last call."""

    def __init__(self) -> None:
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Resets the mean. Call it at the start of each epoch."""
        self._last = (0, 0.0)

    def __call__(self, batch: int, mean: float | None, params: Mapping[str, Any]) -> float | None:
        """Returns the mean loss of the batches since the last call, None if `fit` reports no loss.

        `mean` is the `loss` that `fit` reports for this batch. If `ExactCheckpoint` has resumed
        within an epoch, `params["batches_before"]` is the number of earlier batches that the mean
        includes.
        """
        if mean is None:
            return None
        count, (last_count, last_mean) = params.get("batches_before", 0) + batch + 1, self._last
        self._last = (count, mean)
        return (mean * count - last_mean * last_count) / (count - last_count)
