"""The run directory: everything that a training reads and writes.

settings.toml                  all settings, with nothing left to choose
tokenizer/joint.model          or source.model and target.model, or source.model and labels.txt
data/train, data/valid         token ids; data/train may be in the directory `data.prepared`
data/valid.source, .target     validation text
data/start                     the run of the initial checkpoint, if any
data/teacher                   the run of the teacher, if any
data/pretrained                weights of the pretrained encoder, if any
data/source.vectors, .target   pretrained word vectors, if any
data/prepared.json             record of the text and of these files; written last
checkpoints/                   see `keras_seq.storage.checkpoints`
result.json                    the result of a finished training
metrics.jsonl, samples.txt, tensorboard/, README.md, evaluations.json, report.html
corpus/                        text that the package generated, if any
.lock                          held by the process that writes to the directory
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_seq.plugins import plugin_of
from keras_seq.run.checks import check_is_run, check_new
from keras_seq.run.hub_address import fetch, is_hub_address
from keras_seq.run.layout import (
    MARK,
    check_mark,
    check_run_files,
    remove_run_files,
    remove_run_temporaries,
)
from keras_seq.run.logs import RunLogs
from keras_seq.run.prepared_data import PreparedData
from keras_seq.run.pretrained_models import find_pretrained, is_pretrained_name
from keras_seq.run.stored_values import read_values
from keras_seq.settings import MAX_FILE_BYTES, TASKS, Settings, SettingsError
from keras_seq.storage import (
    LOCK,
    DirectoryLock,
    check_writable,
    read_file,
    reason,
    remove,
    write_file,
)
from keras_seq.storage.checkpoints import Checkpoint, CheckpointStore, NotFiniteError
from keras_seq.storage.checkpoints.tensor_file import TensorFileError, require_finite
from keras_seq.storage.limits import MAX_INDEX_BYTES, MAX_RECORD_BYTES
from keras_seq.text import InputError, Labels

Shapes = Mapping[str, tuple[tuple[int, ...], str]]


class Run(PreparedData):
    """The directory of one training. Use `Run.create` or `Run.open` to get one.

    The directory is not trusted. `Run.open` refuses links, pipes and devices, and checks sizes and
    numbers before it reads or builds anything large.

    Attributes:
        path: The directory.
        settings: The `Settings` of the run.
        checkpoints: Its `CheckpointStore`. Save with `save_checkpoint` and `mark_best`.
        logs: Its `RunLogs`.
        loaded_step: The step of the checkpoint that was loaded last; None before the first.
        writable: If False, methods that write do nothing. Worker hosts read the directory that
            the first host writes.

    Example:

    >>> import tempfile
    >>> from keras_seq.settings import load_settings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = Run.create(f"{folder}/dates", load_settings(preset="demo"))
    ...     run.logs.append_metrics({"step": 1, "loss": 6.5})
    ...     Run.open(f"{folder}/dates").settings == run.settings
    True
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Settings,
        *,
        notice: Callable[[str], None] | None = None,
        writable: bool = True,
    ) -> None:
        super().__init__(Path(path), settings)
        self.checkpoints = CheckpointStore(
            self.path / "checkpoints", keep=settings.training.keep_checkpoints, notice=notice
        )
        self.logs = RunLogs(self.path, writable=writable)
        self.loaded_step: int | None = None
        self.writable = writable
        self._lock: DirectoryLock | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        settings: Settings,
        *,
        overwrite: bool = False,
        notice: Callable[[str], None] | None = None,
        lock: DirectoryLock | None = None,
    ) -> Run:
        """Creates the directory of a new run.

        If `path` is a run and `overwrite` is True, its files are deleted first. Other files stay.
        `notice` is called with one line for each damaged checkpoint that is skipped. `lock` is the
        lock of `path`, if this process holds it. Raises InputError if `path` cannot be used.
        """
        check_new(path, overwrite=overwrite)
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            remove_run_files(path, keep=("settings.toml",))
            remove_run_temporaries(path)
            run = cls(path, settings, notice=notice)
            run._lock = lock
            run.update_settings(settings)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {reason(error)}") from None
        return run

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        notice: Callable[[str], None] | None = None,
        writable: bool = True,
    ) -> Run:
        """Opens a run and checks that its settings are valid and fit its weights.

        `notice` is called with one line for each damaged checkpoint that is skipped. Raises
        InputError if `path` is not a run, its files cannot be trusted, or a newer keras-seq wrote
        it. An address such as `hf://user/name` is downloaded first; `pretrained:dates` is a model
        of the collection.
        """
        if is_pretrained_name(path):
            path = find_pretrained(path)
        path = fetch(path) if is_hub_address(path) else Path(path)
        check_is_run(path)
        file = path / "settings.toml"
        check_run_files(path)
        text = read_file(file, MAX_FILE_BYTES).decode("utf-8", "replace")
        check_mark(file, text)
        try:
            settings = Settings.from_toml(text, where=f"{file}: ")
        except SettingsError as error:
            raise InputError(str(error)) from None
        run = cls(path, settings, notice=notice, writable=writable)
        if run.checkpoints.latest_step is not None:
            run.require_weights()
        return run

    def update_settings(self, settings: Settings) -> None:
        """Replaces the settings, in this object and in the directory."""
        self.settings = settings
        self.checkpoints.keep = settings.training.keep_checkpoints
        if self.writable:
            write_file(self.path / "settings.toml", (MARK + settings.to_toml()).encode())

    def lock(self) -> DirectoryLock:
        """Takes the lock of the directory. `unlock` or the end of the process releases it."""
        if self._lock is None:
            self._lock = DirectoryLock(self.path)
            remove_run_temporaries(self.path)
        return self._lock

    def unlock(self) -> None:
        """Releases the lock of the directory."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def check_writable(self) -> None:
        """Raises InputError if the directory of the logs or of the checkpoints is not writable."""
        if self.writable:
            check_writable(self.path)
            self.checkpoints.check_writable()

    def discard(self) -> None:
        """Deletes the run's files, and the directory if it is then empty."""
        remove_run_files(self.path)
        remove(self.path / LOCK)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    # Results

    @property
    def tensorboard_directory(self) -> Path:
        """Directory of TensorBoard event files."""
        return self.path / "tensorboard"

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Writes the result of a finished training."""
        self._write("result.json", json.dumps(result, indent=1))

    def read_result(self) -> dict[str, Any] | None:
        """Returns the result of the training; None if it has not finished."""
        return read_values(self.path / "result.json", MAX_RECORD_BYTES)

    def remove_result(self) -> None:
        """Deletes the result, because training resumes."""
        if self.writable:
            remove(self.path / "result.json")

    def write_card(self, markdown: str) -> None:
        """Writes the model card, README.md."""
        self._write("README.md", markdown)

    def read_card(self) -> str:
        """Returns the model card, or its heading if the training has not finished."""
        path = self.path / "README.md"
        if not path.exists():
            return "# A keras-seq run\n"
        return read_file(path, MAX_INDEX_BYTES).decode("utf-8", "replace")

    def write_evaluations(self, evaluations: Mapping[str, Any]) -> None:
        """Writes the evaluations of test sets, by the names of the sets."""
        self._write("evaluations.json", json.dumps(evaluations, indent=1, ensure_ascii=False))

    def read_evaluations(self) -> dict[str, Any]:
        """Returns the evaluations of test sets; empty if there is none."""
        return read_values(self.path / "evaluations.json", MAX_INDEX_BYTES) or {}

    def _write(self, name: str, text: str) -> None:
        path = self.path / name
        if self.writable:
            try:
                write_file(path, text.encode())
            except OSError as error:
                raise OSError(f"{path}: not written: {reason(error)}") from error

    # Checkpoints

    def save_checkpoint(
        self, step: int, tensors: Mapping[str, Mapping[str, np.ndarray]], state: Mapping[str, Any]
    ) -> Path:
        """Saves a checkpoint atomically; see `CheckpointStore.save` for the arguments.

        If the run is not writable, this only checks that all arrays are finite, so that every
        host raises the same error.
        """
        if self.writable:
            return self.checkpoints.save(step, tensors, state)
        try:
            for arrays in tensors.values():
                for name, array in arrays.items():
                    require_finite(name, array)
        except TensorFileError as error:
            raise NotFiniteError(f"{self.path}: not saved: {error}") from None
        return self.path

    def mark_best(self, step: int) -> None:
        """Marks a saved checkpoint as the best. The best checkpoint is never deleted."""
        if self.writable:
            self.checkpoints.mark_best(step)

    def make_permanent(self, step: int) -> None:
        """Marks a checkpoint, before it is saved, as one that is never deleted."""
        if self.writable:
            self.checkpoints.make_permanent(step)

    def load_weights(self, expected: Shapes, which: str | int = "best") -> dict[str, np.ndarray]:
        """Loads the weights of one checkpoint by name; see `CheckpointStore.load`."""
        return self.load_checkpoint({"weights": expected}, which).tensors["weights"]

    def load_checkpoint(
        self, expected: Mapping[str, Shapes], which: str | int = "latest"
    ) -> Checkpoint:
        """Loads several parts of one checkpoint, and its state; see `CheckpointStore.load`."""
        checkpoint = self.checkpoints.load(expected, which)
        self.loaded_step = checkpoint.step
        return checkpoint

    def copy_checkpoint(self, directory: str | os.PathLike[str], which: str | int = "best") -> Run:
        """Creates a run in a new directory with the weights of one checkpoint of this run."""
        copy = Run.create(directory, self.settings)
        copy.save_vocabularies(*self.vocabularies)
        self.checkpoints.copy_weights(copy.checkpoints, which)
        return copy

    def require_task(self, task: str) -> None:
        """Raises `InputError`, with the command to use, if the run is for another command."""
        own = self.settings.task
        is_alike = plugin_of("task", own) and TASKS[own].command == TASKS[task].command
        if own != task and not is_alike:
            raise InputError(
                f"{self.path}: a run of task {own!r}, expected {task!r}: "
                f"use `keras-seq {TASKS[own].command}`"
            )

    def require_weights(self, which: str | int = "best") -> None:
        """Raises InputError if there is no checkpoint, or if its file is too small for the model.

        Call this before building the model: even settings within their bounds can describe a model
        of terabytes.
        """
        size = self.checkpoints.weights_size()
        if size is None:
            raise InputError(f"{self.path}: no checkpoint, the training has not saved one yet")
        self.checkpoints.select(which)
        self._require_size(self.settings.model.min_parameters(), "settings.toml describes")

    def require_weights_of_vocabulary(self) -> None:
        """Raises InputError if the file of weights is too small for the model and the vocabulary.

        Call this before building the model, whose table of embeddings can take gigabytes.
        """
        model = self.settings.model
        source, target = self.vocabularies
        # Labels have no embeddings.
        tokenizer = source if isinstance(target, Labels) else target
        self._require_size(
            model.min_parameters() + tokenizer.vocabulary_size * model.min_token_parameters,
            "settings.toml and the vocabulary describe",
        )

    def _require_size(self, parameters: int, what: str) -> None:
        size = self.checkpoints.weights_size() or 0
        # A stored parameter takes at least two bytes.
        min_size = 2 * parameters
        if size < min_size:
            raise InputError(
                f"{self.path}: {what} a model of at least {min_size:,} bytes, the weights have "
                f"{size:,}: they do not belong together"
            )
