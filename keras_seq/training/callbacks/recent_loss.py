"""The loss of the last few updates, out of what `fit` tells its callbacks."""


class RecentLoss:
    """Turns means since the epoch began, which `fit` gives, into means since the last look."""

    def __init__(self):
        self.begin_epoch()

    def begin_epoch(self):
        """To be called when an epoch begins, and the means with it."""
        self._seen = (0, 0.0)

    def __call__(self, batch, mean):
        """The mean of the batches since the last call, None where `fit` gives no loss.

        Args:
            batch: Integer, the batch of the epoch that has ended, from 0.
            mean: Float, the `loss` that `fit` gives with it, or None.
        """
        if mean is None:
            return None
        count, (old_count, old_mean) = batch + 1, self._seen
        self._seen = (count, mean)
        return (mean * count - old_mean * old_count) / (count - old_count)
