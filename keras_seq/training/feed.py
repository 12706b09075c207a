"""From a run's token shards to what `fit` takes."""

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


def fit_batch(stream: BatchStream, k: int) -> FitBatch:
    """Batch k as a model of `keras_seq.models` and its loss take it.

    The loss is a sum, and the weights have the divisor in them: that of all rows of
    the batch, those of other hosts included. So the gradients of the parts add up to
    that of the weighted mean over all real tokens, however rows are shared out.

    Args:
        stream: The batches.
        k: Non-negative integer.

    Returns:
        `{"source": (B, S), "target": (B, T)}`, the targets to predict `(B, T)`, and the
        weight of each row's tokens, float32 `(B,)`.
    """
    batch = stream.batch(k)
    targets = batch["target_output"]
    weights = batch.get("weight")
    if weights is None:
        weights = np.ones(len(targets), np.float32)
    total = np.float32(stream.total_weight(k))
    # Where all rows weigh nothing, there is nothing to divide.
    weights = weights / total if total > 0 else np.zeros_like(weights)
    return {"source": batch["source"], "target": batch["target_input"]}, targets, weights
