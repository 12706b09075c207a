"""Recordings: read from files, and stored as ids of a corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from keras_seq.storage import open_regular
from keras_seq.text import InputError

# Samples of 16 bits are stored as ids of 16 bits. Ids below this one have another meaning; the
# four most negative samples become the fifth.
_FIRST_ID = 4
_ZERO = 2**15
# Number of ids of a corpus of samples.
SAMPLE_IDS = 2**16


class SoundInfo(NamedTuple):
    """The sampling rate of a recording, in Hz, and its number of samples."""

    rate: int
    samples: int

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return self.samples / self.rate


def sound_info(path: str | os.PathLike[str]) -> SoundInfo:
    """Reads the header of a recording; see `read_sound`."""
    with _opened(path) as file:
        return _info(path, file)


def read_sound(
    path: str | os.PathLike[str], rate: int | None = None, max_seconds: float | None = None
) -> np.ndarray:
    """Reads a recording as float32 samples `(N,)` from -1 to 1.

    Channels are averaged. Needs the extra `speech`.

    Args:
        path: A WAV, FLAC, OGG or MP3 file.
        rate: Sampling rate in Hz to convert to; by default the rate of the file.
        max_seconds: The longest duration that is read; a longer recording has no samples.

    Raises:
        InputError: If the file cannot be read, is not a recording, or has samples that are not
            numbers; or if the extra is not installed.
    """
    with _opened(path) as file:
        return decode_sound(file, path, rate, max_seconds)


def decode_sound(
    file: BinaryIO,
    name: str | os.PathLike[str],
    rate: int | None = None,
    max_seconds: float | None = None,
) -> np.ndarray:
    """Reads a recording from an open file that can seek; see `read_sound`.

    `name` is the name of the file in messages.
    """
    info = _info(name, file)
    if max_seconds is not None and info.seconds > max_seconds:
        return np.zeros(0, np.float32)
    file.seek(0)
    channels, file_rate = _call(name, "read", file, dtype="float32", always_2d=True)
    samples: np.ndarray = channels.mean(axis=1)
    if not np.isfinite(samples).all():
        raise InputError(f"{name}: has samples that are not numbers")
    if rate is not None and file_rate != rate and len(samples):
        samples = _import("soxr").resample(samples, file_rate, rate)
    return np.clip(samples, -1, 1).astype(np.float32)


def find_sound(name: str, folders: Iterable[str | os.PathLike[str]]) -> Path:
    """Returns the path of a recording: `name` itself if absolute, else in the first folder with it.

    Without any, the path in the first folder.
    """
    paths = [Path(folder, name) for folder in folders] or [Path(name)]
    return next((path for path in paths if path.exists()), paths[0])


def sample_ids(samples: np.ndarray) -> np.ndarray:
    """Converts float samples `(N,)` from -1 to 1 to uint16 ids, from 4 on."""
    numbers = np.round(samples.astype(np.float64) * _ZERO) + _ZERO
    return np.clip(numbers, _FIRST_ID, SAMPLE_IDS - 1).astype(np.uint16)


def samples_of(ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Converts ids `(B, S)` back to float32 samples `(B, S)`, 0 after the lengths `(B,)`.

    Example:

    >>> ids = sample_ids(np.array([0.0, 0.5, -1.0]))
    >>> samples_of(ids[None], np.array([2])).tolist()
    [[0.0, 0.5, 0.0]]
    """
    real = np.arange(ids.shape[1]) < lengths[:, None]
    return np.where(real, (ids.astype(np.float32) - _ZERO) / _ZERO, np.float32(0))


def write_sound(path: str | os.PathLike[str], samples: np.ndarray, rate: int) -> None:
    """Writes float samples `(samples,)` to a WAV file of 32-bit floats."""
    _import("soundfile").write(path, samples, rate, subtype="FLOAT")


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a recording; links are followed, because collections of recordings are large."""
    try:
        return open_regular(Path(path).resolve())
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _info(name: str | os.PathLike[str], file: BinaryIO) -> SoundInfo:
    info = _call(name, "info", file)
    return SoundInfo(info.samplerate, info.frames)


def _call(path: str | os.PathLike[str], name: str, file: Any, **options: Any) -> Any:
    """Calls a function of soundfile."""
    soundfile = _import("soundfile")
    try:
        return getattr(soundfile, name)(file, **options)
    except soundfile.SoundFileError as error:
        reason = str(error).rpartition(": ")[2].rstrip(".").lower()
        raise InputError(f"{path}: not a recording that can be read ({reason})") from None


def _import(module: str) -> Any:
    """Imports a module of the extra `speech`, which few users need."""
    try:
        return __import__(module)
    except ImportError:
        raise InputError(
            f"recordings need the package {module}: python -m pip install 'keras-seq[speech]'"
        ) from None
