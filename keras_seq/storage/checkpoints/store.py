"""Checkpoints that survive a kill at any moment, and are trusted only if whole.

A checkpoint is a directory `step-00001200` with safetensors files, `state.json`
and `MANIFEST.json`, which has the size and the SHA-256 of each. It is written under
another name, flushed to the disk and renamed, so under its own name it is
whole or not there. `latest` and `best` are files that hold a name.
"""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from keras_seq.storage import (
    TEMPORARY,
    DirectoryLock,
    check_writable,
    make_directory,
    read_file,
    reason,
    remove,
    remove_temporaries,
    size_on_disk,
    sync_directory,
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
from keras_seq.text import InputError

T = TypeVar("T")

_NAME = re.compile(r"step-(\d{8,12})")
_PART = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MAX_POINTER_BYTES = 64


class NotFiniteError(InputError):
    """An array to save holds a NaN or an infinity."""


class CheckpointStore:
    """The checkpoints of one run.

    Args:
        directory: Where they are; made when the first is saved.
        keep: How many of the newest are kept, besides the best.
        notice: Called with one line for each damaged checkpoint that is passed
            over; a warning without it.
    """

    def __init__(
        self, directory: Path, *, keep: int = 3, notice: Callable[[str], None] | None = None
    ) -> None:
        self.directory = Path(directory)
        self.keep = keep
        self._notice = notice or _warn

    @property
    def steps(self) -> list[int]:
        """The steps saved, ascending."""
        if not self.directory.is_dir() or self.directory.is_symlink():
            return []
        found = []
        for entry in os.scandir(self.directory):
            match = _NAME.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=False):
                found.append(int(match[1]))
        return sorted(found)

    @property
    def latest_step(self) -> int | None:
        """The newest step: what the pointer says, or else the highest there is."""
        pointed = self._read_pointer("latest")
        steps = self.steps
        return pointed if pointed is not None else (steps[-1] if steps else None)

    @property
    def best_step(self) -> int | None:
        """The step marked as the best, None if none is."""
        return self._read_pointer("best")

    def select(self, which: str | int) -> str | int:
        """Checks the name of a checkpoint that a user gave.

        Args:
            which: `"best"`, `"latest"`, or the step of a stored checkpoint, also as text.

        Returns:
            `"best"`, `"latest"`, or the step as an integer.

        Raises:
            InputError: Anything else, with the steps that are stored.
        """
        if which in ("best", "latest"):
            return which
        text = str(which)
        steps = self.steps
        # A name has at most 12 digits; `int` refuses thousands of them.
        if text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) in steps:
            return int(text)
        stored = ", ".join(map(str, steps)) or "none"
        raise InputError(
            f"{self.directory}: received checkpoint {text[:40]!r}, expected best, latest or a "
            f"stored step: {stored}"
        )

    def save(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, np.ndarray]],
        state: Mapping[str, Any],
    ) -> Path:
        """Writes a checkpoint, points `latest` to it and deletes those too old.

        Args:
            step: The update after which it is taken, 0 or more.
            tensors: Arrays by part and name: `{"weights": {...}, "training": {...}}`.
            state: Whatever JSON can hold.

        Returns:
            The checkpoint's directory.

        Raises:
            NotFiniteError: An array that is not finite; nothing is changed.
            OSError: The disk is full or read-only; earlier checkpoints stay.
        """
        for part in tensors:
            if not _PART.fullmatch(part):
                raise ValueError(f"a part's name must be short lower-case text, not {part!r}")
        remove_temporaries(self.directory)
        make_directory(self.directory, parents=True)
        final = self._path(step)
        try:
            with temporary_directory(self.directory, final.name) as temporary:
                write_checkpoint(temporary, step, tensors, state)
                sync_tree(temporary)
                if final.exists():
                    self._set_aside(final)
                os.rename(temporary, final)
        except TensorFileError as error:
            raise NotFiniteError(f"{final}: not saved: {error}") from None
        except OSError as error:
            before = (
                f"the last one saved is step {self.latest_step}" if self.steps else "none is saved"
            )
            raise OSError(f"{final}: not saved: {reason(error)}; {before}") from error
        sync_directory(self.directory)
        self._write_pointer("latest", step)
        self._prune()
        remove_temporaries(self.directory)
        return final

    def lock(self, holder: str) -> DirectoryLock:
        """Makes this process the only one that saves here, until the lock is released.

        Args:
            holder: What it is for, in the message where another of these has it.

        Raises:
            InputError: Another holds it, or the directory cannot be made or written.
        """
        self._make_directory()
        return DirectoryLock(self.directory, holder)

    def check_writable(self) -> None:
        """InputError if no checkpoint could be saved for lack of permission or space."""
        self._make_directory()
        check_writable(self.directory)

    def _make_directory(self) -> None:
        try:
            make_directory(self.directory, parents=True)
        except OSError as error:
            raise InputError(f"{self.directory}: cannot be made: {reason(error)}") from None

    def mark_best(self, step: int) -> None:
        """Points `best` to a saved step, which is kept from then on."""
        if step not in self.steps:
            raise ValueError(f"step {step} is not saved: saved are {self.steps}")
        self._write_pointer("best", step)

    def load(
        self,
        expected: Mapping[str, Mapping[str, tuple[tuple[int, ...], str]]],
        which: str | int = "best",
        *,
        notice: Callable[[str], None] | None = None,
        check_all: bool = False,
    ) -> Checkpoint:
        """Reads the parts asked for from the best or the latest whole checkpoint.

        The sizes and hashes of the manifest are checked, then that the header
        of each file has exactly the expected names, shapes and dtypes, and only then
        is data read. A damaged checkpoint is passed over with a notice.

        Args:
            expected: Shape and dtype of each array, by part and name.
            which: `"best"`, which is the latest if no best is marked; `"latest"`; or the
                step of a stored checkpoint. If that step is damaged, no other replaces it.
            notice: In place of the store's own.
            check_all: Whether a checkpoint is damaged where a part is that is not asked for.

        Raises:
            InputError: No checkpoint, none whole, one of another model, or one
                that a newer version of the format wrote.
        """
        specs = {
            part: {name: tensor_spec(*spec) for name, spec in arrays.items()}
            for part, arrays in expected.items()
        }
        return self._first_whole(
            lambda step: read_checkpoint(self._path(step), step, specs, check_all), which, notice
        )

    def copy_weights(self, store: CheckpointStore, which: str | int = "best") -> int:
        """Copies the weights of one checkpoint into another store.

        Args:
            store: One without checkpoints.
            which: As for `load`.

        Returns:
            The step.

        Raises:
            InputError: No checkpoint, or none whole.
        """

        def copy(step: int) -> int:
            copy_weights(self._path(step), store._path(step), step)
            return step

        return self._first_whole(copy, which, None)

    def _first_whole(
        self, read: Callable[[int], T], which: str | int, notice: Callable[[str], None] | None
    ) -> T:
        notice = notice or self._notice
        reasons = []
        for step in self._candidates(which):
            try:
                found = read(step)
            except DamagedError as damage:
                reason = f"{self._path(step)}: damaged: {damage}"
                reasons.append(reason)
                notice(reason)
                continue
            if reasons:
                notice(f"{self._path(step)}: taken in its place")
            return found
        if reasons:
            raise InputError(f"{self.directory}: no whole checkpoint; {reasons[0]}")
        raise InputError(f"{self.directory}: no checkpoint, the training has not saved one yet")

    def weights_size(self) -> int | None:
        """Bytes of the largest weights file there is, None without any checkpoint.

        Of a large file, four times what it takes on the disk at most: a sparse
        one would promise more than it has.
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

    def _candidates(self, which: str | int) -> Iterator[int]:
        steps = self.steps
        if not steps:
            return
        selected = self.select(which)
        if isinstance(selected, int):
            yield selected
            return
        first = self.best_step if selected == "best" else None
        if first is None:
            first = self.latest_step
        if first is not None:
            yield first
        yield from (step for step in reversed(steps) if step != first)

    def _read_pointer(self, name: str) -> int | None:
        try:
            content = read_file(self.directory / name, _MAX_POINTER_BYTES)
        except InputError:
            return None
        match = _NAME.fullmatch(content.decode("ascii", "replace").strip())
        step = int(match[1]) if match else None
        return step if step in self.steps else None

    def _write_pointer(self, name: str, step: int) -> None:
        write_file(self.directory / name, f"{self._path(step).name}\n".encode())

    def _prune(self) -> None:
        steps = self.steps
        kept = {*steps[-self.keep :], self.best_step, self.latest_step}
        for step in steps:
            if step not in kept:
                self._set_aside(self._path(step))

    def _set_aside(self, path: Path) -> None:
        """Renames a checkpoint that is to be deleted: half a deleted one must not look like one."""
        aside = self.directory / f"{TEMPORARY}old-{path.name}"
        remove(aside)
        os.rename(path, aside)


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=2)
