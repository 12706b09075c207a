"""Reads and writes safetensors files. Checks the header of a file before reading any data."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_seq.storage import atomic_file, open_regular

# Maps each dtype to its safetensors code and its item size in bytes.
_DTYPES = {"bfloat16": ("BF16", 2), "bool": ("BOOL", 1)} | {
    f"{kind}{8 * size}": (f"{kind[0].upper()}{8 * size}", size)
    for kind, sizes in (("float", (8, 4, 2)), ("int", (8, 4, 2, 1)), ("uint", (8, 4, 2, 1)))
    for size in sizes
}


class TensorFileError(ValueError):
    """The content of a file differs from what is expected; the message says where."""


class Written(NamedTuple):
    """Size and hash of a written file."""

    size: int
    sha256: str


class TensorSpec(NamedTuple):
    """Shape and dtype name of one array."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def tensor_spec(shape: Any, dtype: Any) -> TensorSpec:
    """Builds a `TensorSpec` from a shape and a dtype of numpy or Keras."""
    # numpy knows the name bfloat16 only if ml_dtypes is loaded.
    name = "bfloat16" if dtype == "bfloat16" else np.dtype(dtype).name
    if name not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}, not {name!r}")
    return TensorSpec(tuple(int(size) for size in shape), name)


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray]) -> Written:
    """Writes arrays atomically and flushes them; returns the size and SHA-256 of the file.

    Raises TensorFileError if a float array contains NaN or infinity, and ValueError if the format
    has no code for a dtype.
    """
    arrays = {name: np.asarray(value) for name, value in tensors.items()}
    for name, array in arrays.items():
        require_finite(name, array)
    # Sorting by item size, largest first, aligns each array to its item size.
    arrays = dict(sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])))
    header: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        spec = tensor_spec(array.shape, array.dtype)
        header[name] = {
            "dtype": _DTYPES[spec.dtype][0],
            "shape": list(spec.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    size = 0
    with atomic_file(path) as stream:
        head = len(text).to_bytes(8, "little") + text
        # Writes one array at a time, to avoid a second copy of the model in memory.
        for part in itertools.chain([head], map(_little_endian_bytes, arrays.values())):
            stream.write(part)
            digest.update(part)
            size += len(part)
    return Written(size, digest.hexdigest())


def read_tensors(path: Path, expected: Mapping[str, TensorSpec]) -> dict[str, np.ndarray]:
    """Reads exactly the expected arrays, by name; checks the header before it reads any data.

    The numbers in names such as `optimizer/14/adam/kernel` depend on the order of the layers, which
    a new version of this library may change. So another number is accepted if the rest of the name
    matches; only arrays of otherwise equal names are told apart by their numbers.

    Raises TensorFileError if the names, shapes, dtypes or the file size are not as expected, the
    file is not a safetensors file, or a value is not finite.
    """
    with open_regular(path) as stream:
        file_size = os.fstat(stream.fileno()).st_size
        header, start = _read_header(stream, file_size, expected)
        header = _with_expected_numbers(header, expected)
        offsets = _check_header(header, expected)
        total = sum(_nbytes(spec) for spec in expected.values())
        if file_size != start + total:
            raise TensorFileError(f"{file_size} bytes, expected {start + total}")
        buffer = bytearray(total)
        if stream.readinto(buffer) != total:
            raise TensorFileError("ends early")
    arrays = {}
    for name, spec in expected.items():
        part = memoryview(buffer)[offsets[name] : offsets[name] + _nbytes(spec)]
        array = np.frombuffer(part, dtype=_numpy_dtype(spec.dtype)).reshape(spec.shape)
        require_finite(name, array)
        arrays[name] = array
    return arrays


def largest_size(expected: Mapping[str, TensorSpec]) -> int:
    """Returns an upper bound of the size of a file with exactly these arrays."""
    return 8 + _header_limit(expected) + sum(_nbytes(spec) for spec in expected.values())


def require_finite(name: str, array: np.ndarray) -> None:
    """Raises TensorFileError if a float array contains NaN or infinity."""
    # numpy does not count bfloat16 as a float type, but `isfinite` supports it.
    if array.dtype.name.startswith(("float", "bfloat")) and not np.isfinite(array).all():
        raise TensorFileError(f"{name} holds a value that is not finite")


def _header_limit(expected: Mapping[str, TensorSpec]) -> int:
    # JSON may write one character of a name as an escape sequence of six characters.
    return 4096 + sum(6 * len(name) + 512 for name in expected)


def _read_header(
    stream: Any, file_size: int, expected: Mapping[str, TensorSpec]
) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(stream.read(8), "little")
    if file_size < 8 or length > file_size - 8:
        raise TensorFileError("not a safetensors file")
    if length > _header_limit(expected):
        raise TensorFileError(f"a header of {length} bytes is too long for this model")
    try:
        header = json.loads(stream.read(length))
    except (ValueError, RecursionError):
        raise TensorFileError("not a safetensors file") from None
    if not isinstance(header, dict):
        raise TensorFileError("not a safetensors file")
    header.pop("__metadata__", None)
    return header, 8 + length


def _with_expected_numbers(
    header: Mapping[str, Any], expected: Mapping[str, TensorSpec]
) -> dict[str, Any]:
    """Renames optimizer variables whose names differ from the expected ones only in numbers."""
    names = _by_name_without_number(expected)
    renamed: dict[str, str] = {}
    for key, stored in _by_name_without_number(header).items():
        wanted = names.get(key, [])
        same_count = len(wanted) == len(stored)
        renamed |= dict(zip(stored, wanted if same_count else stored, strict=True))
    return {renamed[name]: entry for name, entry in header.items()}


def _by_name_without_number(names: Iterable[str]) -> dict[str, list[str]]:
    """Groups names by what remains without the number, each group in order of the numbers."""
    groups: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in names:
        match = re.match(r"optimizer/(\d{1,9})/", name)
        if match:
            groups[f"optimizer/{name[match.end() :]}"].append((int(match[1]), name))
        else:
            groups[name].append((0, name))
    return {key: [name for _, name in sorted(group)] for key, group in groups.items()}


def _check_header(header: Mapping[str, Any], expected: Mapping[str, TensorSpec]) -> dict[str, int]:
    missing = sorted(expected.keys() - header.keys())
    surplus = sorted(header.keys() - expected.keys())
    if missing or surplus:
        parts = [f"lacks {missing[0]!r}"] if missing else []
        parts += [f"has {surplus[0][:80]!r}, which the model does not"] if surplus else []
        raise TensorFileError(" and ".join(parts))
    offsets = {}
    for name, spec in expected.items():
        entry = header[name]
        required = {"dtype": _DTYPES[spec.dtype][0], "shape": list(spec.shape)}
        stored = {key: entry.get(key) for key in required} if isinstance(entry, dict) else {}
        if stored != required:
            raise TensorFileError(
                f"{name} is {str(stored.get('dtype'))[:8]} {str(stored.get('shape'))[:60]}, "
                f"the model has {required['dtype']} {required['shape']}"
            )
        span = entry.get("data_offsets")
        start = span[0] if isinstance(span, list) and len(span) == 2 else None
        if type(start) is not int or span != [start, start + _nbytes(spec)]:
            raise TensorFileError(f"{name} has offsets that do not fit its shape")
        offsets[name] = start
    end = 0
    for name in sorted(expected, key=lambda name: (offsets[name], _nbytes(expected[name]))):
        if offsets[name] != end:
            raise TensorFileError(f"{name} overlaps another array or leaves a gap")
        end += _nbytes(expected[name])
    return offsets


def _nbytes(spec: TensorSpec) -> int:
    return math.prod(spec.shape) * _DTYPES[spec.dtype][1]


def _numpy_dtype(name: str) -> np.dtype:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name).newbyteorder("<")


def _little_endian_bytes(array: np.ndarray) -> bytes:
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.tobytes(order="C")
