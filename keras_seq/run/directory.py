"""The run directory: all that a training needs and leaves, and its file names.

    settings.toml                  complete, as resolved
    tokenizer/joint.model          or source.model and target.model, or source.model and labels.txt
    data/train, data/valid         token ids (`keras_seq.data.write_corpus`)
    data/valid.source, .target     the text validated on
    data/start                     the run whose weights it began with, if there is one
    data/pretrained                weights of the pretrained encoder it began with, if any
    data/source.vectors, .target   word vectors that embeddings began with, if any
    data/prepared.json             what all this was made from; written last
                                   (data/train may be another's, which `data.prepared` names)
    checkpoints/                   see `keras_seq.storage.checkpoints`
    result.json                    what a finished training came to
    metrics.jsonl, samples.txt, tensorboard/, README.md
    corpus/                        text that the package made itself, if it did
    .lock                          held by the process that writes here

A directory from elsewhere is not trusted: `Run.open` refuses links, pipes and devices anywhere in
these files, and bounds sizes and numbers before anything large is done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_seq.run.checks import MARK, WORK, check_new
from keras_seq.run.logs import RunLogs
from keras_seq.run.vocabularies import Vocabulary, read_vocabularies, write_vocabularies
from keras_seq.settings import MAX_FILE_BYTES, TASKS, Settings, SettingsError
from keras_seq.storage import (
    LOCK,
    TEMPORARY,
    DirectoryLock,
    check_regular,
    check_tree,
    check_writable,
    make_directory,
    read_file,
    read_json,
    reason,
    remove,
    remove_temporaries,
    write_file,
)
from keras_seq.storage.checkpoints import Checkpoint, CheckpointStore
from keras_seq.storage.checkpoints.tensor_file import TensorSpec, tensor_spec
from keras_seq.text import InputError, Labels, Tokenizer, read_lines

# In the order of deleting: what a kill leaves has no checkpoint and is not prepared.
_OWN = (
    "checkpoints",
    "data",
    "tokenizer",
    "result.json",
    "metrics.jsonl",
    "samples.txt",
    "tensorboard",
    "README.md",
    "corpus",
    "settings.toml",
)
_MAX_RECORD_BYTES = 16 << 20
_MAX_RESULT_BYTES = 1 << 16

Shapes = Mapping[str, tuple[Sequence[int], Any]]


class Run:
    """One training's directory. Made by `Run.create` or `Run.open`.

    Attributes:
        path: The directory.
        settings: The `Settings` it was made with.
        logs: Its `RunLogs`.
        loaded_step: Step of the checkpoint that was read last; None before the first.

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
    ) -> None:
        self.path = Path(path)
        self.settings = settings
        self._checkpoints = CheckpointStore(
            self.path / "checkpoints", keep=settings.training.keep_checkpoints, notice=notice
        )
        self.logs = RunLogs(self.path)
        self.loaded_step: int | None = None
        self._vocabularies: tuple[Tokenizer, Vocabulary] | None = None
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
        """Makes the directory of a new run.

        Args:
            path: A directory that does not exist or is empty.
            settings: Written to it.
            overwrite: Delete what an earlier run left in `path`. Only a run's
                own files are deleted, and only if `path` is a run.
            notice: Called with one line for each damaged checkpoint passed over.
            lock: That of `path`, if this process holds it already.

        Raises:
            InputError: `path` is a file, is not empty, or cannot be written.
        """
        check_new(path, overwrite=overwrite)
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            for name in _OWN:
                # Written over below: until then what is deleted here is known as a run's.
                if name != "settings.toml":
                    remove(path / name)
            _remove_temporaries(path)
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
    ) -> Run:
        """Opens a run and checks that its settings are sane and fit its weights.

        Args:
            path: The directory.
            notice: Called with one line for each damaged checkpoint passed over.

        Raises:
            InputError: `path` is not a run, or is one that cannot be trusted.
        """
        path = Path(path)
        if not path.exists():
            raise InputError(f"{path}: no such run directory")
        if not path.is_dir():
            raise InputError(f"{path}: not a run directory but a file")
        file = path / "settings.toml"
        if not file.exists() and not file.is_symlink():
            raise InputError(f"{path}: not a run directory of keras-seq: it has no settings.toml")
        _check_own_files(path)
        text = read_file(file, MAX_FILE_BYTES).decode("utf-8", "replace")
        try:
            settings = Settings.from_toml(text, where=f"{file}: ")
        except SettingsError as error:
            raise InputError(str(error)) from None
        run = cls(path, settings, notice=notice)
        if run.latest_step is not None:
            run.require_weights()
        return run

    def update_settings(self, settings: Settings) -> None:
        """Replaces the settings, here and in the directory."""
        self.settings = settings
        self._checkpoints.keep = settings.training.keep_checkpoints
        write_file(self.path / "settings.toml", (MARK + settings.to_toml()).encode())

    def lock(self) -> DirectoryLock:
        """Makes this process the only one that writes here, until `unlock` or its end.

        Raises:
            InputError: Another process holds the lock, or nothing can be written.
        """
        if self._lock is None:
            self._lock = DirectoryLock(self.path)
            _remove_temporaries(self.path)
        return self._lock

    def unlock(self) -> None:
        """Lets other processes write here."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def check_writable(self) -> None:
        """InputError if the directory takes no logs or no checkpoints."""
        check_writable(self.path)
        self._checkpoints.check_writable()

    def discard(self) -> None:
        """Deletes the run's files, and the directory if nothing else is in it."""
        for name in (*_OWN, LOCK):
            remove(self.path / name)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    # Vocabularies

    @property
    def vocabularies(self) -> tuple[Tokenizer, Vocabulary]:
        """Of source and target: one object where it is joint, labels where these are learned."""
        if self._vocabularies is None:
            self._vocabularies = read_vocabularies(self.path / "tokenizer", self.settings)
        return self._vocabularies

    @property
    def source_tokenizer(self) -> Tokenizer:
        """Reads source text. The target's own object where the vocabulary is joint."""
        return self.vocabularies[0]

    @property
    def target_tokenizer(self) -> Tokenizer:
        """Reads and writes target text; of a task that has text as its target."""
        target = self.vocabularies[1]
        if not isinstance(target, Tokenizer):
            raise TypeError(f"a run of task {self.settings.task!r} writes labels, not text")
        return target

    @property
    def labels(self) -> Labels:
        """What a run of a task with labels may answer."""
        target = self.vocabularies[1]
        if not isinstance(target, Labels):
            raise TypeError(f"a run of task {self.settings.task!r} writes text, not labels")
        return target

    def save_vocabularies(self, source: Tokenizer, target: Vocabulary) -> None:
        """Keeps what turns text into ids and back; the same object twice is kept once."""
        write_vocabularies(self.path / "tokenizer", source, target)
        self._vocabularies = (source, target)

    # Data

    @property
    def train_directory(self) -> Path:
        """Where the token ids trained on are: here, or where `data.prepared` says."""
        shared = self.settings.data.prepared
        return (self.path if shared is None else Path(shared)) / "data" / "train"

    @property
    def valid_directory(self) -> Path:
        """Where the token ids validated on are."""
        return self.path / "data" / "valid"

    @property
    def corpus_directory(self) -> Path:
        """Where text goes that the package made itself."""
        return self.path / "corpus"

    @property
    def start_directory(self) -> Path:
        """Where the run is that this one began with, of which weights and vocabulary are kept."""
        return self.path / "data" / "start"

    @property
    def pretrained_directory(self) -> Path:
        """Where the weights are of the pretrained encoder that this run began with."""
        return self.path / "data" / "pretrained"

    @property
    def start_step(self) -> int | None:
        """The step of the weights that this run began with, None if they were new."""
        return CheckpointStore(self.start_directory / "checkpoints").latest_step

    def vectors_file(self, side: str) -> Path:
        """Where word vectors are that the embeddings of one side began with."""
        return self.path / "data" / f"{side}.vectors"

    def save_valid_lines(self, sources: Iterable[str], references: Iterable[str]) -> None:
        """Keeps the text validated on; a line must not hold a line feed."""
        make_directory(self.path / "data")
        for name, lines in (("source", sources), ("target", references)):
            content = "".join(f"{line}\n" for line in lines).encode()
            write_file(self.path / "data" / f"valid.{name}", content)

    def valid_lines(self) -> tuple[list[str], list[str]]:
        """The text validated on: sources and references, one line each."""
        data = self.path / "data"
        sources = list(read_lines(check_regular(data / "valid.source")))
        references = list(read_lines(check_regular(data / "valid.target")))
        if len(sources) != len(references):
            raise InputError(
                f"{data}: valid.source has {len(sources)} lines, valid.target has {len(references)}"
            )
        return sources, references

    def prepared_files(self) -> list[str]:
        """The files that a preparation leaves, relative to the run, sorted."""
        found = [path for path in (self.path / "tokenizer").iterdir() if path.is_file()]
        found += [path for path in (self.path / "data").rglob("*") if path.is_file()]
        names = {path.relative_to(self.path).as_posix() for path in found}
        return sorted(names - {"data/prepared.json"})

    def write_preparation(self, record: Mapping[str, Any]) -> None:
        """Keeps what the run was prepared from; from now on it counts as prepared."""
        write_file(self.preparation_file(self.path), json.dumps(record, indent=1).encode())

    def read_preparation(self) -> dict[str, Any] | None:
        """What `write_preparation` kept, None if the preparation was not finished."""
        return _read_json(self.preparation_file(self.path), _MAX_RECORD_BYTES)

    @staticmethod
    def preparation_file(path: str | os.PathLike[str]) -> Path:
        """Where the run in a directory keeps what it was prepared from."""
        return Path(path) / "data" / "prepared.json"

    def copy_checkpoint(self, directory: str | os.PathLike[str], which: str | int = "best") -> Run:
        """Makes a run with the settings, the tokenizers and the weights of one checkpoint.

        Args:
            directory: A new one.
            which: `"best"`, `"latest"`, or the step of a stored checkpoint.

        Raises:
            InputError: No whole checkpoint, or `directory` cannot be written.
        """
        copy = Run.create(directory, self.settings)
        copy.save_vocabularies(*self.vocabularies)
        self._checkpoints.copy_weights(copy._checkpoints, which)
        return copy

    # What the training tells

    @property
    def tensorboard_directory(self) -> Path:
        """Where event files of TensorBoard go."""
        return self.path / "tensorboard"

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Keeps what a finished training came to."""
        _put(self.path / "result.json", json.dumps(result, indent=1))

    def read_result(self) -> dict[str, Any] | None:
        """What `write_result` kept, None if the training was never finished."""
        return _read_json(self.path / "result.json", _MAX_RESULT_BYTES)

    def remove_result(self) -> None:
        """The training goes on."""
        remove(self.path / "result.json")

    def write_card(self, markdown: str) -> None:
        """Writes the run's README.md: the model card."""
        _put(self.path / "README.md", markdown)

    # Checkpoints

    @property
    def latest_step(self) -> int | None:
        """The newest step saved, None before the first."""
        return self._checkpoints.latest_step

    @property
    def best_step(self) -> int | None:
        """The step marked as the best, None if none is."""
        return self._checkpoints.best_step

    @property
    def saved_steps(self) -> list[int]:
        """All steps saved, ascending."""
        return self._checkpoints.steps

    def stored_step(self, which: str | int = "best") -> int:
        """The step of a checkpoint that is named `"best"`, `"latest"` or by its step.

        Raises:
            InputError: No such checkpoint is stored.
        """
        selected = self._checkpoints.select(which)
        best = self.best_step if selected == "best" else None
        step = selected if isinstance(selected, int) else best or self.latest_step
        if step is None:
            raise InputError(f"{self.path}: no checkpoint, the training has not saved one yet")
        return step

    def save_checkpoint(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, np.ndarray]],
        state: Mapping[str, Any],
    ) -> Path:
        """Writes a checkpoint whole or not at all; see `CheckpointStore.save`.

        Args:
            step: The update after which it is taken.
            tensors: `{"weights": {name: array}, "training": {name: array}}`.
            state: Whatever JSON can hold.
        """
        return self._checkpoints.save(step, tensors, state)

    def mark_best(self, step: int) -> None:
        """Marks a saved step as the best; it is never pruned."""
        self._checkpoints.mark_best(step)

    def load_weights(self, expected: Shapes, which: str | int = "best") -> dict[str, np.ndarray]:
        """Reads the weights, which must be exactly the expected ones.

        Args:
            expected: `{name: (shape, dtype)}` of the model built from `settings`.
            which: `"best"`, which is the latest if no best is marked; `"latest"`; or the
                step of a stored checkpoint.

        Returns:
            Arrays by name.

        Raises:
            InputError: No whole checkpoint, or not this model's.
        """
        return self.load_checkpoint({"weights": expected}, which).tensors["weights"]

    def load_checkpoint(
        self, expected: Mapping[str, Shapes], which: str | int = "latest"
    ) -> Checkpoint:
        """Reads several parts of one checkpoint, and its state.

        Args:
            expected: `{"weights": {name: (shape, dtype)}, "training": {...}}`.
            which: `"best"`, `"latest"`, or the step of a stored checkpoint. If that step is
                damaged, no other replaces it.

        Returns:
            `Checkpoint(step, tensors, state)`.

        Raises:
            InputError: No whole checkpoint, or not this model's.
        """
        found = self._checkpoints.load(
            {part: _specs(shapes) for part, shapes in expected.items()}, which
        )
        self.loaded_step = found.step
        return found

    def require_task(self, task: str) -> None:
        """Refuses a run whose task is another one: InputError, with what is for it."""
        own = self.settings.task
        if own != task:
            raise InputError(
                f"{self.path}: a run of task {own!r}, expected {task!r}: "
                f"`keras-seq {TASKS[own].command}` uses it"
            )

    def require_weights(self, which: str | int = "best") -> None:
        """Refuses a run that has no weights, or far fewer than its settings ask for.

        To be called before the model is built: settings within their bounds can
        still describe a model of terabytes.

        Args:
            which: The checkpoint that will be read: `"best"`, `"latest"`, or a step.

        Raises:
            InputError: No checkpoint, too few weights, or `which` is not a stored checkpoint.
        """
        size = self._checkpoints.weights_size()
        if size is None:
            raise InputError(f"{self.path}: no checkpoint, the training has not saved one yet")
        self._checkpoints.select(which)
        # Two bytes for each parameter is the least that is ever stored.
        least = 2 * self.settings.model.least_parameters()
        if size < least:
            raise InputError(
                f"{self.path}: settings.toml describes a model of at least {least:,} bytes, "
                f"the weights have {size:,}: they do not belong together"
            )


def _remove_temporaries(path: Path) -> None:
    # Others may keep files of their own beside those of the run.
    remove_temporaries(path, (*_OWN, "probe"))
    for name in ("data", "tokenizer"):
        remove_temporaries(path / name)


def _check_own_files(path: Path) -> None:
    """Refuses links, pipes and devices among the files of a run; others in it are not read."""
    for name in os.listdir(path):
        if name in (*_OWN, LOCK, WORK) or name.startswith(TEMPORARY):
            check_tree(path / name, limit=None if name == WORK else 100_000)


def _put(path: Path, text: str) -> None:
    try:
        write_file(path, text.encode())
    except OSError as error:
        raise OSError(f"{path}: not written: {reason(error)}") from error


def _read_json(path: Path, limit: int) -> dict[str, Any] | None:
    if not path.exists() and not path.is_symlink():
        return None
    return read_json(path, limit)


def _specs(shapes: Shapes) -> dict[str, TensorSpec]:
    return {name: tensor_spec(shape, dtype) for name, (shape, dtype) in shapes.items()}
