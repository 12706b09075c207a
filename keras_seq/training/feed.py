"""From a run's token shards to what `fit` takes."""

from typing import Literal

import numpy as np

from keras_seq import backend
from keras_seq.data import BatchStream, TokenCorpus
from keras_seq.run import Run

FitBatch = tuple[dict[str, np.ndarray], np.ndarray]


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

    Args:
        stream: The batches.
        k: Non-negative integer.

    Returns:
        `{"source": (B, S), "target": (B, T)}` and the targets to predict `(B, T)`.
    """
    batch = stream.batch(k)
    return (
        {"source": batch["source"], "target": batch["target_input"]},
        batch["target_output"],
    )
