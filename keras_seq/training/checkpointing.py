"""Saves and restores the checkpoints of a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from keras_seq import backend
from keras_seq.callbacks.validation import check_state
from keras_seq.run.models import weight_arrays, weight_shapes
from keras_seq.run.stored_values import is_count, is_number, is_text
from keras_seq.storage.checkpoints import NotFiniteError
from keras_seq.text import InputError
from keras_seq.training.errors import DivergedError
from keras_seq.training.setup import Notice, TrainingSetup
from keras_seq.training.state import (
    averaged_weights,
    restore_arrays,
    seed_arrays,
    training_arrays,
    training_shapes,
)
from keras_seq.training.stopping import SignalStop
from keras_seq.training.warm_start import initialize_weights


@dataclass(frozen=True)
class TrainingProgress:
    """The content of `state.json` in a checkpoint: the training state without its arrays.

    With N batches per update, the next batch is number N * `step`. `validation` is the state of
    `Validation`, and `signature` the sacreBLEU signature of the last score. `backend` is stored
    because backends have batches of different shapes. `log_sizes` has the size of each log in
    bytes; later entries are removed on resume.
    """

    step: int = 0
    minutes: float = 0.0
    validation: dict[str, Any] = field(default_factory=dict)
    signature: str = ""
    backend: str = ""
    log_sizes: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingProgress:
        """Creates an instance from a dict of its attributes. Raises ValueError if one is wrong."""
        log_sizes, validation = values.get("log_sizes"), values.get("validation")
        minutes = values.get("minutes")
        valid = {
            "step": is_count(values.get("step")),
            "minutes": isinstance(minutes, float) and is_number(minutes) and minutes >= 0,
            "validation": isinstance(validation, dict),
            "signature": is_text(values.get("signature")),
            "backend": is_text(values.get("backend")),
            "log_sizes": isinstance(log_sizes, dict) and all(map(is_count, log_sizes.values())),
        }
        if wrong := [name for name, is_valid in valid.items() if not is_valid]:
            raise ValueError(f"not the state of a training: {', '.join(wrong)}")
        try:
            check_state(values["validation"])
        except ValueError as error:
            raise ValueError(f"not the state of a training: validation: {error}") from None
        return cls(**{name: values[name] for name in valid})


class Checkpointer:
    """Saves and restores the state of a training in its run; notifies `stop` of each save."""

    def __init__(self, setup: TrainingSetup, stop: SignalStop) -> None:
        self._setup = setup
        self._stop = stop
        self._run = setup.run
        self._seeds: dict[str, np.ndarray] = {}
        self.saved_step = 0

    def restore(self, notice: Notice) -> TrainingProgress:
        """Restores the latest checkpoint; without one, initializes the weights.

        Raises InputError if the training cannot resume from the checkpoint.
        """
        run, setup = self._run, self._setup
        if not run.checkpoints.steps:
            setup.check_hosts(0)
            initialize_weights(run, setup.model, notice)
            return TrainingProgress()
        checkpoint = run.load_checkpoint(
            {"weights": weight_shapes(setup.model), "training": training_shapes(setup.train_model)}
        )
        try:
            progress = TrainingProgress.from_json(checkpoint.state)
        except ValueError as error:
            raise InputError(f"{run.path}: checkpoint {checkpoint.step}: {error}") from None
        if progress.step != checkpoint.step:
            raise InputError(
                f"{run.path}: checkpoint {checkpoint.step}: its state is of step {progress.step}"
            )
        if progress.backend != backend.name():
            raise InputError(
                f"{run.path}: was trained on {progress.backend}, whose batches differ from those "
                f"of {backend.name()}: set KERAS_BACKEND={progress.backend} to resume"
            )
        setup.check_hosts(progress.step)
        restore_arrays(setup.train_model, checkpoint.tensors["training"])
        self.saved_step = progress.step
        return progress

    def record_seeds(self) -> None:
        """Stores the current states of the seed generators for the next save.

        Seeds advance with each batch and weights with each update. A checkpoint needs both as they
        were between two updates.
        """
        backend.sync_variables(self._setup.train_model)
        self._seeds = seed_arrays(self._setup.train_model)

    def save(self, progress: TrainingProgress) -> None:
        """Saves a checkpoint, unless the last one is of the same update.

        Raises DivergedError if a weight is not finite.
        """
        if progress.step == self.saved_step:
            return
        model, train_model = self._setup.model, self._setup.train_model
        backend.sync_variables(train_model)
        training = training_arrays(train_model) | self._seeds
        with averaged_weights(train_model):
            weights = weight_arrays(model)
        tensors = {"weights": weights, "training": training}
        try:
            self._run.save_checkpoint(progress.step, tensors, asdict(progress))
        except NotFiniteError as error:
            raise DivergedError(f"{error}: lower training.learning_rate") from None
        self.saved_step = progress.step
        self._stop.mark_clean()
