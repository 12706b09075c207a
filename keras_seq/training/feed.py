"""From a run's token shards to what `fit` takes."""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from keras_seq import backend
from keras_seq.cluster import Cluster
from keras_seq.data import BatchStream, PairSampling, TokenCorpus
from keras_seq.run import Run
from keras_seq.text import subword_sampling

# Shape letters: B rows, S source steps, T target steps.

Arrays = dict[str, np.ndarray]
# Inputs, targets and weights; targets and weights are dicts where the model has two outputs.
FitBatch = tuple[Arrays, np.ndarray | Arrays, np.ndarray | Arrays]
MakeFitBatch = Callable[[Arrays, np.ndarray], FitBatch]


def batch_shapes() -> Literal["exact", "buckets"]:
    """How batches are padded: to few shapes where each costs a compilation."""
    return "buckets" if backend.wants_static_shapes() else "exact"


def training_stream(
    run: Run, cluster: Cluster | None = None, first_counted: int = 0
) -> BatchStream:
    """The batches that a run is trained on.

    Args:
        run: A prepared run.
        cluster: What shares the rows of each batch; without it they are all here.
        first_counted: The first target id that counts in the mean of the loss.
    """
    cluster = cluster or Cluster()
    return BatchStream(
        TokenCorpus.open(run.train_directory),
        batch_tokens=run.settings.training.batch_tokens,
        seed=run.settings.seed,
        bucket_width=run.settings.data.bucket_width,
        shapes=batch_shapes(),
        host=cluster.host,
        hosts=cluster.hosts,
        row_multiple=cluster.row_multiple,
        word_dropout=run.settings.training.word_dropout,
        source_word_dropout=run.settings.training.source_word_dropout,
        sampling=_pair_sampling(run),
        first_counted=first_counted,
    )


def _pair_sampling(run: Run) -> PairSampling | None:
    training = run.settings.training
    if not training.subword_alpha:
        return None
    alpha, nbest = training.subword_alpha, training.subword_nbest
    source = subword_sampling(run.source_tokenizer, alpha, nbest)
    if run.target_tokenizer is run.source_tokenizer:
        return PairSampling(source, source)
    return PairSampling(source, subword_sampling(run.target_tokenizer, alpha, nbest))


def make_fit_batch(batch: Arrays, weights: np.ndarray) -> FitBatch:
    """A batch as `fit` takes it.

    Args:
        batch: `source` `(B, S)`, `target_input` and `target_output` `(B, T)`; with
            `alignment` `(B, T, S)` for a model that gives its attention as well.
        weights: Float32 `(B,)`.
    """
    inputs = {"source": batch["source"], "target": batch["target_input"]}
    targets = batch["target_output"]
    if "alignment" not in batch:
        return inputs, targets, weights
    both = {"logits": targets, "attention": batch["alignment"]}
    return inputs, both, {"logits": weights, "attention": weights}


def fit_batches(
    stream: BatchStream, update: int, micro_batches: int = 1, make: MakeFitBatch = make_fit_batch
) -> Iterator[FitBatch]:
    """The batches of one update, as a model of `keras_seq.models` and its loss take them.

    The loss is a sum, and the weights have the divisor in them: that of all rows of
    the update, those of other hosts included. So the gradients of its parts add up to
    that of the weighted mean over all real tokens, however rows are shared out. With
    several batches it is N times as large, for the optimizer takes the mean of N.

    Args:
        stream: The batches.
        update: Non-negative integer.
        micro_batches: Positive integer N, batches that make an update.
        make: Makes of a batch and the weights of its rows what `fit` takes; see `Objective`.

    Returns:
        N tuples of what `make` gives: of pairs `{"source": (B, S), "target": (B, T)}`, the targets
        to predict `(B, T)`, and the weight of each row's tokens, float32 `(B,)`.
    """
    numbers = range(update * micro_batches, (update + 1) * micro_batches)
    total = np.float32(sum(stream.total_weight(k) for k in numbers))
    # Where all rows weigh nothing, there is nothing to divide.
    scale = np.float32(micro_batches) / total if total > 0 else np.float32(0)
    for k in numbers:
        batch: Arrays = {**stream.batch(k)}
        rows = np.ones(len(batch["source"]), np.float32)
        yield make(batch, batch.get("weight", rows) * scale)


def fit_batch(stream: BatchStream, k: int, make: MakeFitBatch = make_fit_batch) -> FitBatch:
    """Batch k of a training where every batch makes an update; see `fit_batches`."""
    return next(fit_batches(stream, k, make=make))
