"""From a run's token shards to what `fit` takes."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from keras_seq import backend
from keras_seq.data import BatchStream, PairSampling, TokenCorpus
from keras_seq.run import Run
from keras_seq.text import subword_sampling

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
        word_dropout=run.settings.training.word_dropout,
        source_word_dropout=run.settings.training.source_word_dropout,
        sampling=_pair_sampling(run),
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
