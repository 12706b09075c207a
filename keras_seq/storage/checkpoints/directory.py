"""One checkpoint: a directory of files, and a manifest with the size and SHA-256 of each."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_seq.storage import hash_file, open_regular, read_file, remove, size_on_disk, write_file
from keras_seq.storage.checkpoints.tensor_file import (
    TensorFileError,
    TensorSpec,
    largest_size,
    read_tensors,
    write_tensors,
)
from keras_seq.text import InputError

__all__ = ["Checkpoint", "DamagedError", "copy_weights", "read_checkpoint", "write_checkpoint"]

FORMAT = 1
_MAX_JSON_BYTES = 1 << 20


class Checkpoint(NamedTuple):
    """What was read: step, arrays by part and name, the state of the training."""

    step: int
    tensors: dict[str, dict[str, np.ndarray]]
    state: dict[str, Any]


class DamagedError(Exception):
    """A checkpoint that is not whole; an older one may be."""


def write_checkpoint(
    directory: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, np.ndarray]],
    state: Mapping[str, Any],
) -> None:
    """Writes the files of a checkpoint into an empty directory.

    Args:
        directory: An empty one.
        step: The update after which it is taken.
        tensors: Arrays by part and name.
        state: Whatever JSON can hold.

    Raises:
        TensorFileError: An array that is not finite.
        OSError: The disk is full or read-only.
    """
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


def read_checkpoint(
    directory: Path, step: int, expected: Mapping[str, Mapping[str, TensorSpec]], check_all: bool
) -> Checkpoint:
    """Reads the parts asked for: sizes and hashes are checked, then headers, then data is read.

    Args:
        directory: The checkpoint's.
        step: The one that its manifest must name.
        expected: Shape and dtype of each array, by part and name.
        check_all: Whether the files that are not asked for must be whole, too.

    Raises:
        DamagedError: It is not whole.
        InputError: It is another model's, of a newer format, or has links in it.
    """
    files = _read_manifest(directory, step)
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
                raise DamagedError(f"{path.name}: {error}") from None
            raise InputError(f"{path}: does not belong to this model: {error}") from None
        except OSError as error:
            raise DamagedError(f"{path.name}: {error.strerror}") from None
    if check_all:
        for name in sorted(files.keys() - {f"{part}.safetensors" for part in expected}):
            # A manifest names files beside it.
            path = directory / Path(name).name
            _check_size(path, files)
            _check_hash(path, files)
    path = directory / "state.json"
    if _check_size(path, files) > _MAX_JSON_BYTES:
        raise DamagedError("state.json is too large")
    _check_hash(path, files)
    return Checkpoint(step, tensors, _read_json(path))


def copy_weights(source: Path, destination: Path, step: int) -> None:
    """Copies a checkpoint without the part that only a training needs.

    Raises:
        DamagedError: It is not whole; nothing is left in `destination`.
    """
    files = _read_manifest(source, step)
    remove(destination)
    destination.mkdir(parents=True)
    try:
        for name in ("weights.safetensors", "state.json"):
            size = _check_size(source / name, files)
            if size_on_disk((source / name).lstat()) < size:
                raise DamagedError(f"{name} is sparse: it has holes instead of values")
            shutil.copyfile(source / name, destination / name, follow_symlinks=False)
            _check_hash(destination / name, files)
    except (DamagedError, FileNotFoundError) as error:
        # Gone, where it was one of a training that goes on meanwhile.
        remove(destination)
        raise DamagedError(str(error)) from None
    # What the manifest says of the part that is not copied, nobody asks.
    manifest = read_file(source / "MANIFEST.json", _MAX_JSON_BYTES)
    write_file(destination / "MANIFEST.json", manifest)


def _read_manifest(directory: Path, step: int) -> dict[str, Any]:
    manifest = _read_json(directory / "MANIFEST.json")
    version = manifest.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"{directory}: format {str(version)[:20]} of a newer keras-seq; "
            f"this one reads up to {FORMAT}"
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
        found = hash_file(path)
    except OSError as error:
        raise DamagedError(f"{path.name}: {error.strerror}") from None
    if found != files[path.name].get("sha256"):
        raise DamagedError(f"{path.name} is not what was written (SHA-256 differs)")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with open_regular(path) as stream:
            content = stream.read(_MAX_JSON_BYTES + 1)
        if len(content) > _MAX_JSON_BYTES:
            raise DamagedError(f"{path.name} is too large")
        value = json.loads(content)
    except FileNotFoundError:
        raise DamagedError(f"{path.name} is missing") from None
    except OSError as error:
        raise DamagedError(f"{path.name}: {error.strerror}") from None
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise DamagedError(f"{path.name} is not valid JSON") from None
    if not isinstance(value, dict):
        raise DamagedError(f"{path.name} is not a JSON object")
    return value
