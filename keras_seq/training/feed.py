"""Converts the token shards of a run to batches for `fit`."""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from keras_seq import backend
from keras_seq.cluster import Cluster
from keras_seq.data import (
    BatchStream,
    ContiguousStream,
    PairSampling,
    TokenCorpus,
    UnseenTokens,
)
from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.text import FIRST_LABEL, InputError, subword_sampling

# Shape letters: B rows, S source steps, T target steps.

Arrays = dict[str, np.ndarray]
Shape = tuple[int, int, int]
# Inputs, targets and weights. For models with two outputs, targets and weights are dicts.
FitBatch = tuple[Arrays, np.ndarray | Arrays, np.ndarray | Arrays]
MakeFitBatch = Callable[[Arrays, np.ndarray], FitBatch]


def batch_shapes() -> Literal["exact", "buckets"]:
    """Returns "buckets", so few batch shapes, if the backend compiles each shape; else "exact"."""
    return "buckets" if backend.wants_static_shapes() else "exact"


def training_stream(
    run: Run, cluster: Cluster | None = None, first_counted: int = 0
) -> BatchStream:
    """Opens the training batches of a prepared run.

    Target ids below `first_counted` do not count for the mean of the loss.
    """
    cluster = cluster or Cluster()
    corpus, training = TokenCorpus.open(run.train_directory), run.settings.training
    if training.carry_state:
        if (cluster.hosts, cluster.row_multiple) != (1, 1):
            raise InputError("training.carry_state: states are carried on one device only")
        return ContiguousStream(
            corpus,
            rows=rows_of_pieces(run.settings),
            length=run.settings.data.max_target_length,
            seed=run.settings.seed,
            word_dropout=training.word_dropout,
        )
    return BatchStream(
        corpus,
        batch_tokens=training.batch_tokens,
        seed=run.settings.seed,
        bucket_width=run.settings.data.bucket_width,
        shapes=batch_shapes(),
        host=cluster.host,
        hosts=cluster.hosts,
        row_multiple=cluster.row_multiple,
        word_dropout=training.word_dropout,
        source_word_dropout=run.settings.training.source_word_dropout,
        unseen=_unseen_tokens(run),
        sampling=_pair_sampling(run),
        tags=run.source_tokenizer.languages.values() if run.languages else (),
        temperature=run.settings.data.temperature,
        first_counted=first_counted,
    )


def rows_of_pieces(settings: Settings) -> int:
    """Returns the rows of a batch of pieces of one text."""
    return max(1, settings.training.batch_tokens // settings.data.max_target_length)


def _unseen_tokens(run: Run) -> UnseenTokens | None:
    """Returns the tokens that are replaced by bytes in training a model that copies."""
    rate = run.settings.training.unseen_tokens
    if not rate or not run.settings.model.copies:
        return None
    byte_ids = run.target_tokenizer.byte_ids
    if not byte_ids:
        return None
    is_text = np.array([piece.is_text for piece in run.target_tokenizer.pieces])
    return UnseenTokens(rate, is_text, np.array(byte_ids, np.int32))


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
    """Converts a batch and the float32 weights `(B,)` of its rows to the arguments of `fit`.

    For models with attention as a second output, the batch has `alignment` `(B, T, S)`.
    """
    inputs = {"source": batch["source"], "target": batch["target_input"]}
    if "carried" in batch:
        inputs = {"target": batch["target_input"], "carried": batch["carried"]}
    targets = batch["target_output"]
    if "alignment" not in batch:
        return inputs, targets, weights
    outputs = {"logits": targets, "attention": batch["alignment"]}
    return inputs, outputs, {"logits": weights, "attention": weights}


def fit_batches(
    stream: BatchStream, update: int, micro_batches: int = 1, make: MakeFitBatch = make_fit_batch
) -> Iterator[FitBatch]:
    """Yields the batches of one update, each converted by `make`.

    The loss is a sum, and the weights contain the divisor: the total weight of all rows of the
    update on all hosts. The gradients of parts of the update thus add up to the gradient of the
    weighted mean over all real tokens, however the rows are distributed. With N batches per update,
    the weights are N times larger, because the optimizer averages the N gradients.
    """
    numbers = range(update * micro_batches, (update + 1) * micro_batches)
    total = np.float32(sum(stream.total_weight(k) for k in numbers))
    # The total is 0 if all rows have weight 0.
    scale = np.float32(micro_batches) / total if total > 0 else np.float32(0)
    for k in numbers:
        batch: Arrays = {**stream.batch(k)}
        rows = np.ones(len(batch["source"]), np.float32)
        yield make(batch, batch.get("weight", rows) * scale)


def fit_batch(stream: BatchStream, k: int, make: MakeFitBatch = make_fit_batch) -> FitBatch:
    """Returns batch `k` of a training with one batch per update; see `fit_batches`."""
    return next(fit_batches(stream, k, make=make))


def largest_shapes(stream: BatchStream) -> list[Shape]:
    """Returns the shapes `(B, S, T)` with the most positions and the largest attention maps."""
    rows, source, target = stream.bounds.T
    positions = rows * (source + target)
    maps = rows * np.maximum(source, target) ** 2
    # If shapes tie in one of the two quantities, the other quantity decides.
    most_positions = int(np.lexsort((maps, positions))[-1])
    largest_maps = int(np.lexsort((positions, maps))[-1])
    chosen = [*dict.fromkeys((most_positions, largest_maps))]
    return [(rows, source, target) for rows, source, target in stream.bounds[chosen].tolist()]


def largest_batch(stream: BatchStream, shape: Shape, make: MakeFitBatch) -> FitBatch:
    """Makes a batch of a shape, to try whether it fits into memory."""
    rows, source_steps, target_steps = shape
    # The first id that is both a token and a label.
    target = np.full((rows, target_steps), FIRST_LABEL, np.int32)
    source = np.full((rows, source_steps), FIRST_LABEL, np.int32)
    weights = np.full(rows, 1 / (rows * target_steps), np.float32)
    batch: Arrays = {"source": source, "target_input": target, "target_output": target}
    if (features := stream.features_shape(rows, source_steps)) is not None:
        batch["features"] = np.full(features, FIRST_LABEL, np.int32)
    if stream.carries:
        batch["carried"] = np.zeros(rows, np.float32)
    return make(batch, weights)
