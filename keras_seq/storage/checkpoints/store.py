"""The checkpoints of a run: written atomically, verified before use."""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from keras_seq.operating_system import sync_directory
from keras_seq.storage import (
    TEMPORARY,
    DirectoryLock,
    check_writable,
    make_directory,
    open_regular,
    reason,
    remove,
    remove_temporaries,
    size_on_disk,
    sync_tree,
    temporary_directory,
    write_file,
)
from keras_seq.storage.checkpoints.directory import (
    Checkpoint,
    DamagedError,
    copy_weights,
    read_checkpoint,
    write_checkpoint,
)
from keras_seq.storage.checkpoints.tensor_file import TensorFileError, tensor_spec
from keras_seq.storage.limits import MAX_RECORD_BYTES
from keras_seq.text import InputError, Notice

T = TypeVar("T")

_NAME = re.compile(r"step-(\d{8,12})")
_PART = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MAX_POINTER_BYTES = 64
# File with the names of the checkpoints that are never deleted, one per line.
_PERMANENT = "permanent"

Shapes = Mapping[str, tuple[Sequence[int], Any]]
"""Shape and dtype of each array, by name."""


class NotFiniteError(InputError):
    """An array to be saved contains NaN or infinity."""


class CheckpointStore:
    """The checkpoints of one run.

    Args:
        directory: The directory; the first `save` creates it.
        keep: Number of newest checkpoints to keep, besides the best and the permanent ones.
        notice: Called with one line for each damaged checkpoint that is skipped. Defaults to
            `warnings.warn`.
    """

    def __init__(self, directory: Path, *, keep: int = 3, notice: Notice | None = None) -> None:
        self.directory = Path(directory)
        self.keep = keep
        self._notice = notice or _warn

    @property
    def steps(self) -> list[int]:
        """Steps of the stored checkpoints, ascending."""
        if not self.directory.is_dir() or self.directory.is_symlink():
            return []
        steps = []
        for entry in os.scandir(self.directory):
            match = _NAME.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=False):
                steps.append(int(match[1]))
        return sorted(steps)

    @property
    def latest_step(self) -> int | None:
        """Step of the newest checkpoint, read from `latest`, or else the highest stored step."""
        step = self._read_pointer("latest")
        return max(self.steps, default=None) if step is None else step

    @property
    def best_step(self) -> int | None:
        """Step of the checkpoint that is marked as best; None if there is none."""
        return self._read_pointer("best")

    @property
    def permanent_steps(self) -> list[int]:
        """Steps of the stored checkpoints that `make_permanent` marked, ascending."""
        text = self._read_text(_PERMANENT, MAX_RECORD_BYTES) or ""
        marked = {int(match[1]) for match in map(_NAME.fullmatch, text.split("\n")) if match}
        return [step for step in self.steps if step in marked]

    def select(self, which: str | int) -> str | int:
        """Returns `"best"`, `"latest"`, or the step of a stored checkpoint as an integer.

        Raises InputError, which lists the stored steps, if `which` is anything else.
        """
        if which in ("best", "latest"):
            return which
        text = str(which)
        steps = self.steps
        # `int` raises for thousands of digits; a step has at most 12.
        if text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) in steps:
            return int(text)
        stored = ", ".join(map(str, steps)) or "none"
        raise InputError(
            f"{self.directory}: received checkpoint {text[:40]!r}, expected best, latest or a "
            f"stored step: {stored}"
        )

    def resolve(self, which: str | int = "best") -> int:
        """Returns the step of the checkpoint that `which` names; see `load`."""
        return self._candidates(which)[0]

    def save(
        self, step: int, tensors: Mapping[str, Mapping[str, np.ndarray]], state: Mapping[str, Any]
    ) -> Path:
        """Writes a checkpoint, points `latest` to it and deletes old checkpoints.

        `tensors` has arrays by part and name, such as `{"weights": {...}, "training": {...}}`, and
        `state` has JSON values. Returns the directory of the checkpoint. Raises NotFiniteError if
        an array is not finite, and OSError if the disk is full; earlier checkpoints stay.
        """
        for part in tensors:
            if not _PART.fullmatch(part):
                raise ValueError(f"the name of a part must be short lower-case text, not {part!r}")
        remove_temporaries(self.directory)
        make_directory(self.directory, parents=True)
        final = self._path(step)
        try:
            with temporary_directory(self.directory, final.name) as temporary:
                write_checkpoint(temporary, step, tensors, state)
                sync_tree(temporary)
                if final.exists():
                    self._mark_for_deletion(final)
                os.rename(temporary, final)
        except TensorFileError as error:
            raise NotFiniteError(f"{final}: not saved: {error}") from None
        except OSError as error:
            # Without reading the pointer, which may fail too.
            last = max(self.steps, default=None)
            stored = "none is saved" if last is None else f"the last one saved is step {last}"
            raise OSError(f"{final}: not saved: {reason(error)}; {stored}") from error
        sync_directory(self.directory)
        self._write_pointer("latest", step)
        self._prune()
        remove_temporaries(self.directory)
        return final

    def remove_leftovers(self) -> None:
        """Deletes the temporary files of a save that was killed."""
        remove_temporaries(self.directory)

    def lock(self, holder: str) -> DirectoryLock:
        """Makes this process the only writer of the store; see `DirectoryLock`."""
        self._make_directory()
        return DirectoryLock(self.directory, holder)

    def check_writable(self) -> None:
        """Raises InputError if the directory cannot be written."""
        self._make_directory()
        check_writable(self.directory)

    def _make_directory(self) -> None:
        try:
            make_directory(self.directory, parents=True)
        except OSError as error:
            raise InputError(f"{self.directory}: cannot be created: {reason(error)}") from None

    def mark_best(self, step: int) -> None:
        """Marks a stored checkpoint as the best. The best checkpoint is never deleted."""
        if step not in self.steps:
            raise ValueError(f"step {step} is not saved: saved are {self.steps}")
        self._write_pointer("best", step)

    def make_permanent(self, step: int) -> None:
        """Marks a checkpoint as one that is never deleted.

        Mark it before it is saved, so that a kill between the two cannot lose the mark.
        """
        steps = {*self.permanent_steps, step}
        text = "".join(f"{self._path(each).name}\n" for each in sorted(steps))
        self._make_directory()
        write_file(self.directory / _PERMANENT, text.encode())

    def load(
        self, expected: Mapping[str, Shapes], which: str | int = "best", *, check_all: bool = False
    ) -> Checkpoint:
        """Reads some parts of a checkpoint, and its state.

        Sizes and hashes of the files are checked first, then the names, shapes and dtypes in the
        headers. If the checkpoint is damaged, calls `notice` and reads the newest undamaged
        checkpoint instead. Raises InputError if there is no undamaged checkpoint, or the checkpoint
        belongs to another model or to a newer format.

        Args:
            expected: Shape and dtype of each array, by part and name:
                `{"weights": {name: (shape, dtype)}, "training": {...}}`.
            which: `"best"`, which is the latest if no checkpoint is marked as best; `"latest"`; or
                the step of a stored checkpoint, which is not replaced if it is damaged.
            check_all: If True, the other parts must be undamaged, too.
        """
        specs = {
            part: {name: tensor_spec(*spec) for name, spec in arrays.items()}
            for part, arrays in expected.items()
        }
        return self._first_undamaged(
            lambda step: read_checkpoint(self._path(step), step, specs, check_all), which
        )

    def copy_weights(self, store: CheckpointStore, which: str | int = "best") -> int:
        """Copies the weights of one checkpoint into an empty store, and returns its step."""

        def copy(step: int) -> int:
            copy_weights(self._path(step), store._path(step), step)
            return step

        return self._first_undamaged(copy, which)

    def _first_undamaged(self, read: Callable[[int], T], which: str | int) -> T:
        problems: list[str] = []
        for step in self._candidates(which):
            try:
                result = read(step)
            except DamagedError as error:
                problems.append(f"{self._path(step)}: damaged: {error}")
                self._notice(problems[-1])
                continue
            if problems:
                self._notice(f"{self._path(step)}: read instead")
            return result
        raise InputError(f"{self.directory}: no undamaged checkpoint; {problems[0]}")

    def weights_size(self) -> int | None:
        """Returns the bytes of the largest weights file, or None if there is no checkpoint.

        A sparse file counts as at most four times its disk space; see `size_on_disk`.
        """
        sizes = []
        for step in self.steps:
            try:
                status = (self._path(step) / "weights.safetensors").lstat()
            except OSError:
                continue
            sizes.append(size_on_disk(status) if stat.S_ISREG(status.st_mode) else 0)
        return max(sizes, default=0) if self.steps else None

    def _path(self, step: int) -> Path:
        return self.directory / f"step-{step:08d}"

    def _candidates(self, which: str | int) -> list[int]:
        """Returns the steps to try, in order. InputError if there is none."""
        if not (steps := self.steps):
            raise InputError(f"{self.directory}: no checkpoint, the training has not saved one yet")
        selected = self.select(which)
        if isinstance(selected, int):
            return [selected]
        first = self.best_step if selected == "best" else None
        first = self.latest_step if first is None else first
        return sorted(steps, key=lambda step: (step == first, step), reverse=True)

    def _read_pointer(self, name: str) -> int | None:
        """Returns the step in a pointer; None if it is missing or damaged.

        Raises InputError if it cannot be read. If it counted as missing, `_prune` would delete the
        best checkpoint.
        """
        text = self._read_text(name, _MAX_POINTER_BYTES)
        match = _NAME.fullmatch((text or "").strip())
        step = int(match[1]) if match else None
        return step if step in self.steps else None

    def _read_text(self, name: str, max_bytes: int) -> str | None:
        """Returns the beginning of a small file; None if it is missing."""
        path = self.directory / name
        try:
            with open_regular(path) as stream:
                return stream.read(max_bytes).decode("ascii", "replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path}: {reason(error)}") from None

    def _write_pointer(self, name: str, step: int) -> None:
        write_file(self.directory / name, f"{self._path(step).name}\n".encode())

    def _prune(self) -> None:
        steps = self.steps
        needed = {
            *steps[-self.keep :],
            *self.permanent_steps,
            self.best_step,
            self.latest_step,
        }
        for step in steps:
            if step not in needed:
                self._mark_for_deletion(self._path(step))

    def _mark_for_deletion(self, path: Path) -> None:
        """Gives a checkpoint a temporary name, so that it never appears half deleted."""
        temporary = self.directory / f"{TEMPORARY}old-{path.name}"
        remove(temporary)
        os.rename(path, temporary)


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=2)
