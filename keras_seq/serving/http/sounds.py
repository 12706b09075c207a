"""Recordings in requests, as files in base64."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_seq.data import decode_sound
from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.tensors import decode_base64, is_base64
from keras_seq.text import InputError

# The longest recording that is decoded, and the longest sum of the recordings of a request after
# they are padded to the same length. A compressed file of a few bytes may hold hours.
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


def read_audio(
    document: Mapping[str, Any], sample_rate: int | None
) -> tuple[dict[str, np.ndarray], bool]:
    """Returns `samples`, `lengths` and True if the request is a list of rows.

    A request is `{"instances": [{"audio": {"b64": "..."}}]}` or `{"inputs": {"audio": [{"b64":
    "..."}]}}`, with WAV, FLAC, OGG or MP3 files. Recordings of another rate than `sample_rate` are
    converted. Raises RequestError if a recording cannot be read.
    """
    if sample_rate is None:
        raise RequestError("the export does not say its sampling rate: send samples and lengths")
    by_row = "instances" in document
    if by_row:
        rows = document["instances"]
        if not all(isinstance(row, dict) and set(row) == {_NAME} for row in rows):
            raise RequestError(f"Expecting objects with {_NAME!r} alone in 'instances'")
        values = [row[_NAME] for row in rows]
    else:
        inputs = document["inputs"]
        if set(inputs) != {_NAME} or not isinstance(inputs[_NAME], list):
            raise RequestError(f"Expecting a list {_NAME!r} alone in 'inputs'")
        values = inputs[_NAME]
    sounds: list[np.ndarray] = []
    longest = 0
    for i, value in enumerate(values):
        sounds.append(_decoded(value, f"{_NAME} {i}", sample_rate))
        longest = max(longest, len(sounds[-1]))
        # Count the padding of all recordings, before the next one takes memory.
        if longest * len(values) > MAX_SECONDS * sample_rate and len(values) > 1:
            raise RequestError(
                f"{len(values)} recordings of up to {longest / sample_rate:.0f} s in one request, "
                f"at most {MAX_SECONDS} s together, padded to the longest; split the request"
            )
    lengths = np.array([len(sound) for sound in sounds], np.int32)
    # The server cannot join rows without a number.
    samples = np.zeros((len(sounds), max(1, lengths.max(initial=0))), np.float32)
    for row, sound in zip(samples, sounds, strict=True):
        row[: len(sound)] = sound
    return {"samples": samples, "lengths": lengths}, by_row


def _decoded(value: Any, name: str, sample_rate: int) -> np.ndarray:
    if not is_base64(value):
        raise RequestError(f'input {name}: expected {{"b64": "..."}}')
    content = io.BytesIO(decode_base64(value["b64"], name))
    try:
        return decode_sound(content, name, sample_rate, MAX_SECONDS)
    except InputError as error:
        raise RequestError(str(error)) from None
