"""Recordings: read from files, and stored as ids of a corpus."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from keras_seq.storage import open_regular
from keras_seq.storage.limits import MAX_SOUND_SAMPLES, MAX_SOUND_VALUES
from keras_seq.text import InputError

# Samples of 16 bits are stored as ids of 16 bits. Ids below this one have another meaning; the
# four most negative samples become the fifth.
_FIRST_ID = 4
_ZERO = 2**15
# Number of ids of a corpus of samples.
SAMPLE_IDS = 2**16
# Values that are decoded at a time.
_BLOCK = 2**20
# Recordings, and samples of them, that are in memory together.
_GROUP = 256
_GROUP_SAMPLES = 2**26
# libsndfile's number of samples if a header does not say it, as in a FLAC file from a pipe.
_UNKNOWN = 2**63 - 1


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
        return SoundReader(file, path).info


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
        InputError: If the file cannot be read, is not a recording, is far too large, or has samples
            that are not numbers; or if the extra is not installed.
    """
    with _opened(path) as file:
        reader = SoundReader(file, path, rate)
        if max_seconds is not None and reader.info.seconds > max_seconds:
            return np.zeros(0, np.float32)
        reader.check_size()
        samples = np.empty(reader.length, np.float32)
        return samples[: reader.read_into(samples)]


def read_sounds(
    paths: Iterable[str | os.PathLike[str]], rate: int | None = None
) -> Iterator[list[np.ndarray]]:
    """Reads recordings in groups that fit into the memory; see `read_sound`.

    A group has up to 256 recordings, and up to 256 MiB of samples unless it is one long recording.
    """
    group: list[np.ndarray] = []
    total = 0
    for path in paths:
        samples = read_sound(path, rate)
        if group and (len(group) == _GROUP or total + len(samples) > _GROUP_SAMPLES):
            yield group
            group, total = [], 0
        group.append(samples)
        total += len(samples)
    if group:
        yield group


class SoundReader:
    """Reads a recording from an open file that can seek, block by block; see `read_sound`.

    A compressed file of kilobytes may hold gigabytes of samples, so the samples of all channels and
    at the rate of the file are never in memory together.

    Args:
        file: A WAV, FLAC, OGG or MP3 file.
        name: The name of the file in messages.
        rate: Sampling rate in Hz to convert to; by default the rate of the file.

    Attributes:
        info: The rate and the number of samples in the header of the file.
        values: Number of samples of all channels together.
        rate: Sampling rate in Hz of the samples that are returned.
        length: Number of samples at this rate, rounded up. A damaged file may have fewer.

    Raises:
        InputError: If the file is not a recording, or does not say how long it is.
    """

    def __init__(
        self, file: BinaryIO, name: str | os.PathLike[str], rate: int | None = None
    ) -> None:
        self._file = file
        self._name = name
        with _reading(name) as soundfile:
            header = soundfile.info(file)
        if header.frames == _UNKNOWN:
            raise InputError(f"{name}: its header does not say how long it is; write it to a file")
        self.info = SoundInfo(header.samplerate, header.frames)
        self._channels = header.channels
        self.values = header.frames * header.channels
        self.rate = self.info.rate if rate is None else rate
        self.length = -(-self.info.samples * self.rate // self.info.rate)

    def check_size(self) -> None:
        """Raises InputError if the recording is too large to be read."""
        if self.values > MAX_SOUND_VALUES or self.length > MAX_SOUND_SAMPLES:
            raise InputError(
                f"{self._name}: {self.info.samples:,} samples per channel and {self.values:,} in "
                f"all at {self.info.rate:,} Hz, expected at most {MAX_SOUND_VALUES:,} in all and "
                f"{MAX_SOUND_SAMPLES:,} per channel at {self.rate:,} Hz; split the recording"
            )

    def read_into(self, row: np.ndarray) -> int:
        """Writes the samples to the float32 array `row` `(length,)`, and returns their number.

        Raises:
            InputError: If the recording is damaged, or has samples that are not numbers.
        """
        end = 0
        for block in self._blocks():
            part = row[end : end + len(block)]
            np.clip(block[: len(part)], -1, 1, out=part)
            end += len(part)
        return end

    def _blocks(self) -> Iterator[np.ndarray]:
        """Yields the mean of the channels at the rate of the result, float32 `(n,)`."""
        rate, left = self.info.rate, self.info.samples
        resampler = None
        if self.rate != rate:
            resampler = _import("soxr").ResampleStream(rate, self.rate, 1, dtype="float32")
        # Neither the channels of a block nor its samples at the new rate are more than `_BLOCK`.
        size = max(1, _BLOCK // max(self._channels, -(-self.rate // rate)))
        self._file.seek(0)
        with _reading(self._name) as soundfile, soundfile.SoundFile(self._file) as sound:
            while left:
                wanted = min(size, left)
                channels = sound.read(wanted, dtype="float32", always_2d=True)
                # A damaged file may end early.
                left = left - wanted if len(channels) == wanted else 0
                samples: np.ndarray = channels.mean(axis=1)
                if not np.isfinite(samples).all():
                    raise InputError(f"{self._name}: has samples that are not numbers")
                yield resampler.resample_chunk(samples, last=not left) if resampler else samples


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
    resolved = Path(path).resolve()
    if resolved.suffix.lower() == ".raw":
        raise InputError(f"{path}: samples without a header; convert them to a WAV file")
    try:
        return open_regular(resolved)
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None


@contextlib.contextmanager
def _reading(name: str | os.PathLike[str]) -> Iterator[Any]:
    """Yields the package soundfile, and raises InputError if it cannot read the recording."""
    soundfile = _import("soundfile")
    try:
        yield soundfile
    except soundfile.SoundFileError as error:
        reason = str(error).rpartition(": ")[2].rstrip(".").lower()
        raise InputError(f"{name}: not a recording that can be read ({reason})") from None


def _import(module: str) -> Any:
    """Imports a module of the extra `speech`, which few users need."""
    try:
        return __import__(module)
    except ImportError:
        raise InputError(
            f"recordings need the package {module}: python -m pip install 'keras-seq[speech]'"
        ) from None
