"""From a run's token shards to what `fit` takes."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from keras_seq import backend
from keras_seq.data import BatchStream, TokenCorpus
from keras_seq.run import Run

# Shape letters: B rows, S source steps, T target steps.

FitBatch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def batch_shapes() -> Literal["exact", "buckets"]:
    """How batches are padded: to few shapes where each costs a compilation."""
    return "buckets" if backend.wants_static_shapes() else "exact"


def training_stream(run: Run) -> BatchStream:
    """The batches that a run is trained on.

    Args:
        run: A prepared run.
    """
    return BatchStream(
        TokenCorpus.open(run.train_directory),
        batch_tokens=run.settings.training.batch_tokens,
        seed=run.settings.seed,
        bucket_width=run.settings.data.bucket_width,
        shapes=batch_shapes(),
    )


def fit_batches(stream: BatchStream, update: int, micro_batches: int = 1) -> Iterator[FitBatch]:
    """The batches of one update, as a model of `keras_seq.models` and its loss take them.

    The loss is a sum, and the weights have the divisor in them: that of all rows of
    the update, those of other hosts included. So the gradients of its parts add up to
    that of the weighted mean over all real tokens, however rows are shared out. With
    several batches it is N times as large, for the optimizer takes the mean of N.

    Args:
        stream: The batches.
        update: Non-negative integer.
        micro_batches: Positive integer N, batches that make an update.

    Returns:
        N tuples of `{"source": (B, S), "target": (B, T)}`, the targets to predict `(B, T)`,
        and the weight of each row's tokens, float32 `(B,)`.
    """
    numbers = range(update * micro_batches, (update + 1) * micro_batches)
    total = np.float32(sum(stream.total_weight(k) for k in numbers))
    # Where all rows weigh nothing, there is nothing to divide.
    scale = np.float32(micro_batches) / total if total > 0 else np.float32(0)
    for k in numbers:
        batch = stream.batch(k)
        targets = batch["target_output"]
        weights = batch.get("weight", np.ones(len(targets), np.float32)) * scale
        yield {"source": batch["source"], "target": batch["target_input"]}, targets, weights


def fit_batch(stream: BatchStream, k: int) -> FitBatch:
    """Batch k of a training where every batch makes an update; see `fit_batches`."""
    return next(fit_batches(stream, k))
