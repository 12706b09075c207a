"""The loss of the last few updates, out of what `fit` tells its callbacks."""


class RecentLoss:
    """Turns means since the epoch began, which `fit` gives, into means since the last look."""

    def __init__(self):
        self.begin_epoch()

    def begin_epoch(self):
        """To be called when an epoch begins, and the means with it."""
        self._seen = (0, 0.0)

    def __call__(self, batch, mean, params):
        """The mean of the batches since the last call, None where `fit` gives no loss.

        Args:
            batch: Integer, the batch of the epoch that has ended, from 0.
            mean: Float, the `loss` that `fit` gives with it, or None.
            params: Those of the callback. Where `ExactCheckpoint` goes on in the middle of an
                epoch, `batches_before` is what the mean has besides.
        """
        if mean is None:
            return None
        count, (old_count, old_mean) = params.get("batches_before", 0) + batch + 1, self._seen
        self._seen = (count, mean)
        return (mean * count - old_mean * old_count) / (count - old_count)
