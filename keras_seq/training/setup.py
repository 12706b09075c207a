"""The model, objective and batches of one training."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import keras

from keras_seq.cluster import Cluster
from keras_seq.run import Run
from keras_seq.run.models import build_run_model
from keras_seq.settings import TASKS
from keras_seq.tasks.task import Task
from keras_seq.text import InputError
from keras_seq.training.feed import FitBatch, fit_batch, fit_batches, training_stream
from keras_seq.training.fitting import run_fit
from keras_seq.training.freezing import freeze
from keras_seq.training.memory_probe import (
    largest_shapes,
    probe_largest_batches,
    seconds_per_update,
)
from keras_seq.training.optimizer import compile_model
from keras_seq.training.precision import dtype_policy, resolve_precision

Notice = Callable[[str], None]


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
        # The hosts of JAX compute together as soon as weights are created.
        self.check_hosts(self.stream.batches_per_epoch, *_fingerprint(run))
        self.largest = largest_shapes(self.stream)
        self.model = build_run_model(run, dtype_policy(training.precision))
        freeze(self.model, training.freeze)
        self.train_model = self.objective.model(self.model)
        compile_model(self.train_model, self.settings, self.objective.loss(self.model))

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
        """Yields the batches from an update on, without end."""
        for update in range(first_update, 10**12):
            yield from fit_batches(
                self.stream, update, self.micro_batches, self.objective.fit_batch
            )

    def fit(self, batches: Callable[[], Iterator[FitBatch]], updates: int, **options: Any) -> None:
        """Trains with `updates` updates per epoch."""
        run_fit(
            self.cluster,
            self.train_model,
            batches,
            fit_batch(self.stream, 0, self.objective.fit_batch),
            steps_per_epoch=updates * self.micro_batches,
            **options,
        )

    def probe_largest_batches(self) -> None:
        """Makes updates with the largest batches and undoes them."""
        probe_largest_batches(
            self.cluster,
            self.train_model,
            self.largest,
            self.settings.training.batch_tokens,
            self.objective.fit_batch,
        )

    def seconds_per_update(self) -> float:
        """Measures the duration of an update with a batch of the largest shape."""
        return seconds_per_update(
            self.cluster,
            self.train_model,
            self.largest[0],
            self.objective.fit_batch,
            self.micro_batches,
        )

    def check_hosts(self, *numbers: int) -> None:
        """Raises InputError if `numbers`, which depend on the files, differ between hosts."""
        if self.cluster.differs(numbers):
            raise InputError(
                f"{self.run.path}: hosts disagree about its checkpoint, its text, its model or the "
                "precision: give all of them the same directory and the same command"
            )


def _fingerprint(run: Run) -> list[int]:
    """Checksums of the settings, including the resolved precision, and of the vocabularies."""
    parts = [run.settings.model_dump_json().encode()]
    parts += [vocabulary.to_bytes() for vocabulary in run.vocabularies]
    return [zlib.crc32(part) for part in parts]
