"""Checkpoints that survive a kill at any moment, and are trusted only if whole.

A checkpoint is a directory `step-00001200` with safetensors files, `state.json`
and `MANIFEST.json`, which has the size and the SHA-256 of each. It is written under
another name, flushed to the disk and renamed, so under its own name it is
whole or not there. `latest` and `best` are files that hold a name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from keras_seq.files import (
    TEMPORARY,
    DirectoryLock,
    check_writable,
    reason,
    remove,
    sync_directory,
    write_file,
    write_file_whole,
)
from keras_seq.tensor_file import (
    TensorFileError,
    TensorSpec,
    hash_file,
    largest_size,
    read_tensors,
    tensor_spec,
    write_tensors,
)
from keras_seq.text import InputError

__all__ = ["Checkpoint", "CheckpointStore", "NotFiniteError"]

FORMAT = 1
T = TypeVar("T")

_NAME = re.compile(r"step-(\d{8,12})")
_PART = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MAX_JSON_BYTES = 1 << 20
_SPARSE_BYTES = 1 << 20


class Checkpoint(NamedTuple):
    """What was read: step, arrays by part and name, the state of the training."""

    step: int
    tensors: dict[str, dict[str, np.ndarray]]
    state: dict[str, Any]


class NotFiniteError(InputError):
    """An array to save holds a NaN or an infinity."""


class _DamagedError(Exception):
    """A checkpoint that is not whole; an older one may be."""


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
        self._clean()
        self.directory.mkdir(parents=True, exist_ok=True)
        final = self._path(step)
        temporary = self.directory / f"{TEMPORARY}{final.name}"
        temporary.mkdir()
        try:
            self._write(temporary, step, tensors, state)
            if final.exists():
                os.rename(final, self.directory / f"{TEMPORARY}old-{final.name}")
            os.rename(temporary, final)
        except TensorFileError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise NotFiniteError(f"{final}: not saved: {error}") from None
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            before = (
                f"the last one saved is step {self.latest_step}" if self.steps else "none is saved"
            )
            raise OSError(f"{final}: not saved: {reason(error)}; {before}") from error
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_directory(self.directory)
        self._write_pointer("latest", step)
        self._prune()
        self._clean()
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
            self.directory.mkdir(parents=True, exist_ok=True)
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
            which: `"best"` or `"latest"`; the latest where no best is marked. Or a step,
                in whose place no other is taken.
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
        return self._first_whole(lambda step: self._load(step, specs, check_all), which, notice)

    def copy_weights(self, store: CheckpointStore, which: str = "best") -> int:
        """Puts the best or the latest whole checkpoint, its weights alone, into another store.

        Args:
            store: One without checkpoints.
            which: As for `load`.

        Returns:
            The step.

        Raises:
            InputError: No checkpoint, or none whole.
        """
        return self._first_whole(lambda step: self._copy(step, store), which, None)

    def _first_whole(
        self, read: Callable[[int], T], which: str | int, notice: Callable[[str], None] | None
    ) -> T:
        if which not in ("best", "latest") and not isinstance(which, int):
            raise ValueError(f'which must be "best", "latest" or a step, not {which!r}')
        notice = notice or self._notice
        reasons = []
        for step in self._candidates(which):
            try:
                found = read(step)
            except _DamagedError as damage:
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
            size = status.st_size
            if size > _SPARSE_BYTES and hasattr(status, "st_blocks"):
                size = min(size, 4 * 512 * status.st_blocks)
            sizes.append(size if stat.S_ISREG(status.st_mode) else 0)
        return max(sizes, default=0) if self.steps else None

    def _path(self, step: int) -> Path:
        return self.directory / f"step-{step:08d}"

    def _candidates(self, which: str | int) -> Iterator[int]:
        if isinstance(which, int):
            yield which
            return
        steps = self.steps
        first = self.best_step if which == "best" else None
        if first is None:
            first = self.latest_step
        if first is not None:
            yield first
        yield from (step for step in reversed(steps) if step != first)

    def _write(
        self,
        directory: Path,
        step: int,
        tensors: Mapping[str, Mapping[str, np.ndarray]],
        state: Mapping[str, Any],
    ) -> None:
        files = {}
        for part, arrays in tensors.items():
            name = f"{part}.safetensors"
            size, digest = write_tensors(directory / name, arrays)
            files[name] = {"size": size, "sha256": digest}
        content = json.dumps(dict(state), indent=1).encode()
        write_file(directory / "state.json", content)
        files["state.json"] = {
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        manifest = {"format": FORMAT, "step": step, "files": files}
        write_file(directory / "MANIFEST.json", json.dumps(manifest, indent=1).encode())
        sync_directory(directory)

    def _load(
        self, step: int, expected: Mapping[str, Mapping[str, TensorSpec]], check_all: bool
    ) -> Checkpoint:
        directory = self._path(step)
        files = self._manifest(directory, step)
        tensors = {}
        for part, specs in expected.items():
            path = directory / f"{part}.safetensors"
            # Before the hash, which would take hours on a file of terabytes.
            if _check_size(path, files) > largest_size(specs):
                raise InputError(f"{path}: does not belong to this model: it is too large")
            _check_hash(path, files)
            try:
                tensors[part] = read_tensors(path, specs)
            except TensorFileError as error:
                if "not finite" in str(error):
                    raise _DamagedError(f"{path.name}: {error}") from None
                raise InputError(f"{path}: does not belong to this model: {error}") from None
            except OSError as error:
                raise _DamagedError(f"{path.name}: {error.strerror}") from None
        if check_all:
            for name in sorted(files.keys() - {f"{part}.safetensors" for part in expected}):
                # A manifest names files beside it.
                path = directory / Path(name).name
                _check_size(path, files)
                _check_hash(path, files)
        path = directory / "state.json"
        if _check_size(path, files) > _MAX_JSON_BYTES:
            raise _DamagedError("state.json is too large")
        _check_hash(path, files)
        return Checkpoint(step, tensors, _read_json(path))

    def _copy(self, step: int, store: CheckpointStore) -> int:
        source, destination = self._path(step), store._path(step)
        files = self._manifest(source, step)
        remove(destination)
        destination.mkdir(parents=True)
        try:
            for name in ("weights.safetensors", "state.json"):
                _check_size(source / name, files)
                shutil.copyfile(source / name, destination / name, follow_symlinks=False)
                _check_hash(destination / name, files)
        except (_DamagedError, FileNotFoundError) as error:
            # Gone, where it was one of a training that goes on meanwhile.
            remove(destination)
            raise _DamagedError(str(error)) from None
        # What the manifest says of the part that is not copied, nobody asks.
        write_file(destination / "MANIFEST.json", (source / "MANIFEST.json").read_bytes())
        return step

    def _manifest(self, directory: Path, step: int) -> dict[str, Any]:
        manifest = _read_json(directory / "MANIFEST.json")
        version = manifest.get("format")
        if isinstance(version, int) and version > FORMAT:
            raise InputError(
                f"{directory}: format {str(version)[:20]} of a newer keras-seq; "
                f"this one reads up to {FORMAT}"
            )
        files = manifest.get("files")
        if version != FORMAT or manifest.get("step") != step or not isinstance(files, dict):
            raise _DamagedError("MANIFEST.json is not a manifest of this checkpoint")
        return files

    def _read_pointer(self, name: str) -> int | None:
        try:
            with open(self.directory / name, "rb") as stream:
                match = _NAME.fullmatch(stream.read(64).decode("ascii", "replace").strip())
        except OSError:
            return None
        step = int(match[1]) if match else None
        return step if step in self.steps else None

    def _write_pointer(self, name: str, step: int) -> None:
        write_file_whole(self.directory / name, f"{self._path(step).name}\n".encode())

    def _prune(self) -> None:
        steps = self.steps
        kept = {*steps[-self.keep :], self.best_step, self.latest_step}
        for step in steps:
            if step not in kept:
                # Renamed first: half a deleted checkpoint must not look like one.
                path = self._path(step)
                os.rename(path, self.directory / f"{TEMPORARY}old-{path.name}")

    def _clean(self) -> None:
        """Deletes what a killed process left; only the one who writes calls this."""
        if not self.directory.is_dir():
            return
        for entry in list(os.scandir(self.directory)):
            if entry.name.startswith(TEMPORARY):
                remove(Path(entry.path))


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=2)


def _check_size(path: Path, files: Mapping[str, Any]) -> int:
    entry = files.get(path.name)
    if not isinstance(entry, dict):
        raise _DamagedError(f"{path.name} is not in the manifest")
    try:
        status = path.lstat()
    except OSError:
        raise _DamagedError(f"{path.name} is missing") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: a link or a special file, expected a regular file")
    if status.st_size != entry.get("size"):
        raise _DamagedError(
            f"{path.name} has {status.st_size} bytes, the manifest says "
            f"{str(entry.get('size'))[:20]}"
        )
    return status.st_size


def _check_hash(path: Path, files: Mapping[str, Any]) -> None:
    try:
        found = hash_file(path)
    except OSError as error:
        raise _DamagedError(f"{path.name}: {error.strerror}") from None
    if found != files[path.name].get("sha256"):
        raise _DamagedError(f"{path.name} is not what was written (SHA-256 differs)")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: a link or a special file, expected a regular file")
        with open(path, "rb") as stream:
            content = stream.read(_MAX_JSON_BYTES + 1)
        if len(content) > _MAX_JSON_BYTES:
            raise _DamagedError(f"{path.name} is too large")
        value = json.loads(content)
    except FileNotFoundError:
        raise _DamagedError(f"{path.name} is missing") from None
    except OSError as error:
        raise _DamagedError(f"{path.name}: {error.strerror}") from None
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise _DamagedError(f"{path.name} is not valid JSON") from None
    if not isinstance(value, dict):
        raise _DamagedError(f"{path.name} is not a JSON object")
    return value
