"""A checkpoint directory: tensor files, the training state, and a manifest with SHA-256 hashes."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_seq.storage import (
    check_regular,
    hash_file,
    read_file,
    read_json,
    remove,
    size_on_disk,
    write_file,
)
from keras_seq.storage.checkpoints.tensor_file import (
    TensorFileError,
    TensorSpec,
    largest_size,
    read_tensors,
    write_tensors,
)
from keras_seq.storage.limits import MAX_RECORD_BYTES
from keras_seq.text import InputError

FORMAT = 1


class Checkpoint(NamedTuple):
    """A checkpoint in memory: number of updates, arrays by part and name, and training state."""

    step: int
    tensors: dict[str, dict[str, np.ndarray]]
    state: dict[str, Any]


class DamagedError(Exception):
    """A checkpoint is incomplete or damaged."""


def write_checkpoint(
    directory: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, np.ndarray]],
    state: Mapping[str, Any],
) -> None:
    """Writes the files of a checkpoint into an empty directory.

    Raises TensorFileError if an array is not finite.
    """
    files = {}
    for part, arrays in tensors.items():
        name = f"{part}.safetensors"
        size, digest = write_tensors(directory / name, arrays)
        files[name] = {"size": size, "sha256": digest}
    content = json.dumps(dict(state), indent=1).encode()
    write_file(directory / "state.json", content)
    files["state.json"] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest = {"format": FORMAT, "step": step, "files": files}
    write_file(directory / "MANIFEST.json", json.dumps(manifest, indent=1).encode())


def read_checkpoint(
    directory: Path, step: int, expected: Mapping[str, Mapping[str, TensorSpec]], check_all: bool
) -> Checkpoint:
    """Reads the expected parts of a checkpoint; checks sizes and hashes first, then headers.

    `check_all` also checks the files of the other parts. Raises DamagedError if the checkpoint is
    incomplete or damaged, and InputError if it belongs to another model, step or newer format, or
    contains links.
    """
    files = _read_manifest(directory, step)
    tensors = {}
    for part, specs in expected.items():
        path = directory / f"{part}.safetensors"
        # Checks the size first, because hashing terabytes would take hours.
        if _check_size(path, files) > largest_size(specs):
            raise InputError(f"{path}: does not belong to this model: it is too large")
        _check_hash(path, files)
        try:
            tensors[part] = read_tensors(path, specs)
        except TensorFileError as error:
            if "not finite" in str(error):
                raise DamagedError(f"{path.name}: {error}") from None
            raise InputError(f"{path}: does not belong to this model: {error}") from None
        except OSError as error:
            raise DamagedError(f"{path.name}: {error.strerror}") from None
    if check_all:
        for name in sorted(files.keys() - {f"{part}.safetensors" for part in expected}):
            # Uses only the file name, because a forged manifest may contain other paths.
            path = directory / Path(name).name
            _check_size(path, files)
            _check_hash(path, files)
    path = directory / "state.json"
    if _check_size(path, files) > MAX_RECORD_BYTES:
        raise DamagedError("state.json is too large")
    _check_hash(path, files)
    return Checkpoint(step, tensors, _read_json(path))


def copy_weights(source: Path, destination: Path, step: int) -> None:
    """Copies a checkpoint without the optimizer state.

    Raises DamagedError if the checkpoint is incomplete or damaged, and deletes `destination`.
    """
    files = _read_manifest(source, step)
    remove(destination)
    destination.mkdir(parents=True)
    try:
        for name in ("weights.safetensors", "state.json"):
            size = _check_size(source / name, files)
            if size_on_disk((source / name).lstat()) < size:
                raise DamagedError(f"{name} is sparse: it has holes instead of values")
            if name == "state.json" and size > MAX_RECORD_BYTES:
                raise DamagedError("state.json is too large")
            shutil.copyfile(source / name, destination / name, follow_symlinks=False)
            _check_hash(destination / name, files)
    except (DamagedError, FileNotFoundError) as error:
        # A training process may delete the checkpoint while it is copied.
        remove(destination)
        raise DamagedError(str(error)) from None
    # Readers ignore the manifest entries of parts that they do not load.
    manifest = read_file(source / "MANIFEST.json", MAX_RECORD_BYTES)
    write_file(destination / "MANIFEST.json", manifest)


def _read_manifest(directory: Path, step: int) -> dict[str, Any]:
    manifest = _read_json(directory / "MANIFEST.json")
    version = manifest.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"{directory}: format {str(version)[:20]} of a newer keras-seq, expected {FORMAT}: "
            "upgrade keras-seq: python -m pip install --upgrade keras-seq"
        )
    files = manifest.get("files")
    if version != FORMAT or manifest.get("step") != step or not isinstance(files, dict):
        raise DamagedError("MANIFEST.json is not a manifest of this checkpoint")
    return files


def _check_size(path: Path, files: Mapping[str, Any]) -> int:
    entry = files.get(path.name)
    if not isinstance(entry, dict):
        raise DamagedError(f"{path.name} is not in the manifest")
    try:
        status = path.lstat()
    except OSError:
        raise DamagedError(f"{path.name} is missing") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: a link or a special file, expected a regular file")
    if status.st_size != entry.get("size"):
        raise DamagedError(
            f"{path.name} has {status.st_size} bytes, the manifest says "
            f"{str(entry.get('size'))[:20]}"
        )
    return status.st_size


def _check_hash(path: Path, files: Mapping[str, Any]) -> None:
    try:
        sha256 = hash_file(path)
    except OSError as error:
        raise DamagedError(f"{path.name}: {error.strerror}") from None
    if sha256 != files[path.name].get("sha256"):
        raise DamagedError(f"{path.name} has changed since it was written (SHA-256 differs)")


def _read_json(path: Path) -> dict[str, Any]:
    # `check_regular` raises InputError for a link or a pipe. Other problems are DamagedErrors.
    if not check_regular(path).exists():
        raise DamagedError(f"{path.name} is missing")
    try:
        return read_json(path, MAX_RECORD_BYTES)
    except InputError as error:
        raise DamagedError(f"{path.name}{str(error).removeprefix(str(path))}") from None
