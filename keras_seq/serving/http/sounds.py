"""Recordings in requests, as files in base64."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_seq.data import SoundReader
from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.tensors import decode_base64, is_base64
from keras_seq.text import InputError

# Longest sum of the recordings of a request after they are padded to the same length. A compressed
# file of a few bytes may hold hours.
MAX_SECONDS = 600
_NAME = "audio"


def has_audio(document: Mapping[str, Any]) -> bool:
    """Tests if a request has recordings instead of samples."""
    inputs, instances = document.get("inputs"), document.get("instances")
    if isinstance(inputs, dict):
        return _NAME in inputs
    return isinstance(instances, list) and any(
        isinstance(row, dict) and _NAME in row for row in instances
    )


@dataclass(frozen=True)
class Recordings:
    """The recordings of a request, whose headers are read.

    Args:
        readers: The recordings.
        length: Number of samples of the longest one, at least 1.
        by_row: True if the request is a list of rows.
    """

    readers: list[SoundReader]
    length: int
    by_row: bool

    @property
    def num_values(self) -> int:
        """Number of samples in all channels and at the rates of the files."""
        return sum(reader.values for reader in self.readers)

    @property
    def num_bytes(self) -> int:
        """Size of the samples, padded to the longest recording."""
        return 4 * len(self.readers) * self.length

    def decode(self) -> dict[str, np.ndarray]:
        """Returns `samples` and `lengths`. Raises RequestError if a recording is damaged."""
        samples = np.zeros((len(self.readers), self.length), np.float32)
        with _refusing():
            counts = [
                reader.read_into(row) for reader, row in zip(self.readers, samples, strict=True)
            ]
        lengths = np.array(counts, np.int32)
        # The server cannot join rows without a number.
        return {"samples": samples[:, : max(1, lengths.max(initial=0))], "lengths": lengths}


def read_audio(document: Mapping[str, Any], sample_rate: int | None, limits: Limits) -> Recordings:
    """Reads the headers of the recordings of a request.

    A request is `{"instances": [{"audio": {"b64": "..."}}]}` or `{"inputs": {"audio": [{"b64":
    "..."}]}}`, with WAV, FLAC, OGG or MP3 files. Recordings of another rate than `sample_rate` are
    converted. Raises RequestError if a recording cannot be read, or if they are too large together.
    """
    if sample_rate is None:
        raise RequestError("the export does not say its sampling rate: send samples and lengths")
    by_row = "instances" in document
    if by_row and "inputs" in document:
        raise RequestError("Expecting only one of 'inputs' or 'instances' keys to exist")
    values = _rows(document["instances"]) if by_row else _columns(document["inputs"])
    readers: list[SoundReader] = []
    longest = decoded = 0
    for i, value in enumerate(values):
        reader = _opened(value, f"{_NAME} {i}", sample_rate)
        readers.append(reader)
        longest = max(longest, reader.length)
        decoded += reader.values
        if longest * len(values) > MAX_SECONDS * sample_rate:
            seconds = f"{longest / sample_rate:.1f} s"
            raise RequestError(
                f"a recording of {seconds}, at most {MAX_SECONDS} s; split the recording"
                if longest > MAX_SECONDS * sample_rate
                else f"{len(values)} recordings of up to {seconds} in one request, at most "
                f"{MAX_SECONDS} s together, padded to the longest; split the request"
            )
        if decoded > limits.sound_values:
            raise RequestError(
                f"{_counted(readers)} of {decoded:,} samples in all channels, at most "
                f"{limits.sound_values:,} in one request; reduce the sampling rate or the channels"
            )
    return Recordings(readers, max(1, longest), by_row)


def _rows(rows: Any) -> list[Any]:
    if not all(isinstance(row, dict) and set(row) == {_NAME} for row in rows):
        raise RequestError(f"Expecting objects with {_NAME!r} alone in 'instances'")
    return [row[_NAME] for row in rows]


def _columns(inputs: Any) -> list[Any]:
    if set(inputs) != {_NAME} or not isinstance(inputs[_NAME], list):
        raise RequestError(f"Expecting a list {_NAME!r} alone in 'inputs'")
    columns: list[Any] = inputs[_NAME]
    return columns


def _opened(value: Any, name: str, sample_rate: int) -> SoundReader:
    if not is_base64(value):
        raise RequestError(f'input {name}: expected {{"b64": "..."}}')
    content = io.BytesIO(decode_base64(value["b64"], name))
    with _refusing():
        reader = SoundReader(content, name, sample_rate)
        reader.check_size()
    return reader


def _counted(recordings: Sequence[Any]) -> str:
    return f"{len(recordings)} recording{'s' if len(recordings) != 1 else ''}"


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Answers with the reason if a recording cannot be read."""
    try:
        yield
    except InputError as error:
        raise RequestError(str(error)) from None
