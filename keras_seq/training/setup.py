"""The model, objective and batches of one training."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import math
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.cluster import Cluster
from keras_seq.cluster.alone import Batches
from keras_seq.process.memory import is_out_of_memory
from keras_seq.run import Run
from keras_seq.run.memory import attention_fits, require_model_memory
from keras_seq.run.models import build_run_model, weight_shapes
from keras_seq.schedules.learning_rates import cycle_ends
from keras_seq.settings import TASKS, TrainingSettings
from keras_seq.storage import require_space
from keras_seq.tasks.task import Task
from keras_seq.text import InputError
from keras_seq.training.errors import OutOfMemoryError
from keras_seq.training.feed import (
    FitBatch,
    Shape,
    fit_batch,
    fit_batches,
    largest_batch,
    largest_shapes,
    training_stream,
)
from keras_seq.training.optimizer import compile_model, freeze
from keras_seq.training.precision import dtype_policy, resolve_precision
from keras_seq.training.state import restore_arrays, training_arrays, training_shapes
from keras_seq.training.word_distillation import with_teacher

Notice = Callable[[str], None]
# Number of updates to measure.
_TIMED_UPDATES = 3


class TrainingSetup:
    """The compiled model, objective and batches of a run.

    The setup is created and used in the scope of the cluster. `model` is used for decoding, and
    `train_model` for training: `model` itself, or a wrapper with its weights. Raises InputError if
    the hosts of the cluster see different files.
    """

    def __init__(self, run: Run, notice: Notice, cluster: Cluster) -> None:
        resolve_precision(run, notice, cluster)
        self.run = run
        self.cluster = cluster
        self.settings = run.settings
        training = self.settings.training
        keras.utils.set_random_seed(self.settings.seed)
        self.micro_batches = training.micro_batches
        self.task: Task = TASKS[self.settings.task]
        self.objective = self.task.objective(self.settings)
        self.stream = training_stream(run, cluster, self.objective.first_counted)
        # Check before creating weights, because JAX creates weights on all hosts together.
        self.check_hosts(self.stream.batches_per_epoch, *_fingerprint(run))
        if training.schedule == "cosine" and (self.max_steps or 0) <= training.warmup_steps:
            raise InputError(
                f"training.warmup_steps: received {training.warmup_steps:,}, expected less than "
                f"the {self.max_steps or 0:,} updates of the training"
            )
        self.cycle_ends = _cycle_ends(training, self.max_steps or 0)
        self.largest = largest_shapes(self.stream)
        # The weights, their gradients and Adam's two moments.
        source, target = (vocabulary.vocabulary_size for vocabulary in run.vocabularies)
        require_model_memory(self.settings, source, target, copies=4)
        self.model = build_run_model(run, dtype_policy(training.precision))
        freeze(self.model, training.freeze)
        self.train_model = self.objective.model(self.model)
        if training.teacher is not None:
            if cluster.description:
                raise InputError(
                    f"training.teacher: received {training.teacher!r}, expected none with several "
                    "devices"
                )
            self.train_model = with_teacher(run, self.model, dtype_policy(training.precision))
        loss = self.objective.loss(self.model)
        compile_model(self.train_model, self.settings, loss, self.max_steps)

    def require_space(self) -> None:
        """Raises InputError if no checkpoint fits on the disk of the run.

        On several hosts nothing is checked, because only the first host writes, and an error there
        would leave the other hosts waiting.
        """
        if self.cluster.hosts > 1:
            return
        self.run.checkpoints.remove_leftovers()
        parts = weight_shapes(self.model), training_shapes(self.train_model)
        size = sum(
            math.prod(shape) * np.dtype(dtype).itemsize
            for part in parts
            for shape, dtype in part.values()
        )
        require_space(size, self.run.path, "a checkpoint")

    @property
    def updates_per_epoch(self) -> int:
        """Updates per epoch; the last one may reach into the next epoch."""
        return -(-self.stream.batches_per_epoch // self.micro_batches)

    @property
    def max_steps(self) -> int | None:
        """Total number of updates that the settings allow, None without a limit."""
        training = self.settings.training
        limits = [] if training.max_steps is None else [training.max_steps]
        if training.max_epochs is not None:
            batches = training.max_epochs * self.stream.batches_per_epoch
            limits.append(-(-batches // self.micro_batches))
        return min(limits, default=None)

    def batches(self, first_update: int = 0) -> Iterator[FitBatch]:
        """Yields the batches of update `first_update` and of all later updates; never ends."""
        make = self.objective.fit_batch
        for update in itertools.count(first_update):
            yield from fit_batches(self.stream, update, self.micro_batches, make)

    def fit(self, batches: Callable[[], Iterator[FitBatch]], updates: int, **options: Any) -> None:
        """Trains with `updates` updates per epoch."""
        example = fit_batch(self.stream, 0, self.objective.fit_batch)
        steps = updates * self.micro_batches
        run_fit(self.cluster, self.train_model, batches, example, steps_per_epoch=steps, **options)

    def probe_largest_batches(self) -> None:
        """Makes an update with each of the largest batches, and restores the state.

        Raises OutOfMemoryError if a batch does not fit into memory.
        """
        before = training_arrays(self.train_model)
        for shape in self.largest:
            rows, source_steps, _ = shape
            rows *= self.objective.rows_of_a_pair
            # A system that promises more memory than it has kills the process that uses it.
            if not attention_fits(self.settings, rows, source_steps):
                raise self.out_of_memory(shape)
            self.train_model.optimizer.begin_last_micro_batch()
            try:
                self._fit_repeated(shape, 1)
            except Exception as error:
                if is_out_of_memory(error):
                    raise self.out_of_memory(shape) from None
                raise
            # `fit` ends by assigning the averages to the weights. On JAX both then share a buffer
            # that the next `fit` cannot donate twice.
            restore_arrays(self.train_model, before)

    def seconds_per_update(self) -> float:
        """Measures the duration of an update with the largest batch, and restores the state.

        `probe_largest_batches` must run first to compile the update.
        """
        before = training_arrays(self.train_model)
        seconds = []
        for count in (1, 1 + _TIMED_UPDATES):
            begin = time.perf_counter()
            self._fit_repeated(self.largest[0], count)
            seconds.append(time.perf_counter() - begin)
            restore_arrays(self.train_model, before)
        # The difference cancels the time before the first and after the last update of `fit`.
        return max(seconds[1] - seconds[0], 0.0) / _TIMED_UPDATES * self.micro_batches

    def _fit_repeated(self, shape: Shape, count: int) -> None:
        batch = largest_batch(self.stream, shape, self.objective.fit_batch)
        batches = functools.partial(itertools.repeat, batch, count)
        run_fit(self.cluster, self.train_model, batches, batch, steps_per_epoch=count)

    def out_of_memory(self, shape: Shape) -> OutOfMemoryError:
        """The error for a batch that does not fit into memory."""
        rows, source_steps, target_steps = shape
        return OutOfMemoryError(
            f"out of memory with a batch of {rows:,} pairs, {source_steps:,} source and "
            f"{target_steps:,} target steps: lower training.batch_tokens "
            f"({self.settings.training.batch_tokens:,}), data.max_source_length and "
            "data.max_target_length, or the size of the model"
        )

    def check_hosts(self, *numbers: int) -> None:
        """Raises InputError if `numbers`, which depend on the files, differ between hosts."""
        if self.cluster.differs(numbers):
            raise InputError(
                f"{self.run.path}: hosts disagree about its checkpoint, its text, its model or the "
                "precision: give all of them the same directory and the same command"
            )


def _cycle_ends(training: TrainingSettings, max_steps: int) -> frozenset[int]:
    """Returns the steps at which the learning rate has fallen to 0; none with one cycle."""
    if training.cycles == 1:
        return frozenset()
    steps = max_steps - training.warmup_steps
    if training.cycles > steps:
        raise InputError(
            f"training.cycles: received {training.cycles}, expected at most the {steps:,} updates "
            "after the warm-up (training.warmup_steps)"
        )
    return frozenset(cycle_ends(training.warmup_steps, max_steps, training.cycles))


def _fingerprint(run: Run) -> list[int]:
    """Checksums of the settings, including the resolved precision, and of the vocabularies."""
    parts = [run.settings.model_dump_json().encode()]
    parts += [vocabulary.to_bytes() for vocabulary in run.vocabularies]
    return [zlib.crc32(part) for part in parts]


def run_fit(
    cluster: Cluster, model: keras.Model, batches: Batches, example: Any, **options: Any
) -> None:
    """Runs `fit` and frees its batch iterator, even after an exception.

    The iterator of TensorFlow has threads that run Python code. A process that exits while such a
    thread is alive can hang. The iterator is part of a reference cycle, and the frames of an
    exception refer to it.
    """
    try:
        with _full_tracebacks():
            cluster.fit(model, batches, example, **options)
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        gc.collect()
        backend.wait_for_feeds()


@contextlib.contextmanager
def _full_tracebacks() -> Iterator[None]:
    """Keeps the frames of Keras in tracebacks, so that `clear_frames` reaches them."""
    filtered = keras.config.is_traceback_filtering_enabled()
    keras.config.disable_traceback_filtering()
    try:
        yield
    finally:
        if filtered:
            keras.config.enable_traceback_filtering()
