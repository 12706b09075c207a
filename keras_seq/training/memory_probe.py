"""Probes the largest batches before training, so that a lack of memory shows immediately."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Sequence

import keras
import numpy as np

from keras_seq.cluster import Cluster
from keras_seq.data import BatchStream
from keras_seq.text import FIRST_LABEL
from keras_seq.training.errors import OutOfMemoryError, is_out_of_memory
from keras_seq.training.feed import FitBatch, MakeFitBatch, make_fit_batch
from keras_seq.training.fitting import run_fit
from keras_seq.training.state import restore_arrays, training_arrays

# Shape letters: B rows, S source steps, T target steps.

Shape = tuple[int, int, int]
# Number of updates to measure.
_TIMED_UPDATES = 3


def largest_shapes(stream: BatchStream) -> list[Shape]:
    """The shape `(B, S, T)` with the most positions, and that with the largest attention maps."""
    rows, source, target = stream.bounds.T
    positions = rows * (source + target)
    maps = rows * np.maximum(source, target) ** 2
    # Ties in one quantity are broken by the other.
    most_positions = int(np.lexsort((maps, positions))[-1])
    largest_maps = int(np.lexsort((positions, maps))[-1])
    return [
        (int(rows[i]), int(source[i]), int(target[i]))
        for i in dict.fromkeys((most_positions, largest_maps))
    ]


def probe_largest_batches(
    cluster: Cluster,
    model: keras.Model,
    shapes: Sequence[Shape],
    batch_tokens: int,
    make: MakeFitBatch = make_fit_batch,
) -> None:
    """Makes an update with each shape, and restores weights, moments and seeds.

    Raises OutOfMemoryError, which names `batch_tokens`, if a batch does not fit into memory.
    """
    before = training_arrays(model)
    for shape in shapes:
        batch = _largest_batch(shape, make)
        model.optimizer.begin_last_micro_batch()
        try:
            batches = functools.partial(itertools.repeat, batch, 1)
            run_fit(cluster, model, batches, batch, steps_per_epoch=1)
        except Exception as error:
            if is_out_of_memory(error):
                raise out_of_memory(shape, batch_tokens) from None
            raise
        # `fit` ends by assigning the averages to the weights. On JAX both then share a buffer that
        # the next `fit` cannot donate twice.
        restore_arrays(model, before)


def seconds_per_update(
    cluster: Cluster,
    model: keras.Model,
    shape: Shape,
    make: MakeFitBatch = make_fit_batch,
    micro_batches: int = 1,
) -> float:
    """Measures the duration of an update with batches of one shape, and restores the state.

    `probe_largest_batches` must run first to compile the update.
    """
    before = training_arrays(model)
    batch = _largest_batch(shape, make)
    seconds = []
    for count in (1, 1 + _TIMED_UPDATES):
        begin = time.perf_counter()
        batches = functools.partial(itertools.repeat, batch, count)
        run_fit(cluster, model, batches, batch, steps_per_epoch=count)
        seconds.append(time.perf_counter() - begin)
        restore_arrays(model, before)
    # The difference excludes the time before the first and after the last update of `fit`.
    return max(seconds[1] - seconds[0], 0.0) / _TIMED_UPDATES * micro_batches


def _largest_batch(shape: Shape, make: MakeFitBatch) -> FitBatch:
    rows, source_steps, target_steps = shape
    # The first id that is both a token and a label.
    target = np.full((rows, target_steps), FIRST_LABEL, np.int32)
    source = np.full((rows, source_steps), FIRST_LABEL, np.int32)
    weights = np.full(rows, 1 / (rows * target_steps), np.float32)
    return make({"source": source, "target_input": target, "target_output": target}, weights)


def out_of_memory(shape: Shape, batch_tokens: int) -> OutOfMemoryError:
    """The error for a batch that does not fit into memory."""
    rows, source_steps, target_steps = shape
    return OutOfMemoryError(
        f"out of memory with a batch of {rows:,} pairs, {source_steps:,} source and "
        f"{target_steps:,} target steps: lower training.batch_tokens ({batch_tokens:,}), "
        "data.max_source_length and data.max_target_length, or the size of the model"
    )
