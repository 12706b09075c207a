"""Encodes recordings as ids of their samples, and their text as token ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_seq.data import SAMPLE_IDS, TokenPair, find_sound, read_sound, sample_ids, sound_info
from keras_seq.preparation.encoding import Encoded, PairEncoder
from keras_seq.preparation.files import training_files
from keras_seq.settings import DataSettings
from keras_seq.text import Example, InputError, Tokenizer

# Recordings whose headers are read for the mean duration.
_SURVEYED = 1000


class SoundEncoder(PairEncoder):
    """Encodes the recording that each source names, and its text.

    Recordings of another rate than `rate` are converted. Those longer than `max_seconds` have no
    samples, so the corpus drops them.

    Args:
        tokenizer: The tokenizer of the text.
        folders: Folders of recordings whose names are relative.
        rate: Samples per second.
        max_seconds: The longest duration.
        max_target_length: The longest text, in tokens.
    """

    num_source_ids = SAMPLE_IDS
    # Recordings of single words are joined to sentences.
    max_parts = 4

    def __init__(
        self,
        tokenizer: Tokenizer,
        folders: Sequence[Path],
        rate: int,
        max_seconds: float,
        max_target_length: int,
    ) -> None:
        super().__init__(tokenizer, tokenizer, round(rate * max_seconds), max_target_length)
        self.folders = folders
        self.rate = rate
        self.max_seconds = max_seconds
        # Texts are joined by what the tokenizer puts between two words.
        parts = tokenizer.encode(["a", "a a"])
        single, double = parts
        self.separators = ((), double[len(single) : len(double) - len(single)])

    def encode(self, chunk: Sequence[Example]) -> Encoded:
        """Returns the samples and token ids of some recordings, which are read one by one."""
        target_ids = self.target.encode([pair.target for pair in chunk])
        lost = self._lost_targets(chunk, target_ids)

        def pairs() -> Iterator[TokenPair]:
            for pair, ids in zip(chunk, target_ids, strict=True):
                yield TokenPair(self._samples(pair), ids, pair.weight)

        return Encoded(pairs(), lost=len(lost), example=lost[0] if lost else None)

    def _samples(self, pair: Example) -> Any:
        if not pair.usable:
            return np.zeros(0, np.uint16)
        path = find_sound(pair.source, self.folders)
        return sample_ids(read_sound(path, self.rate, self.max_seconds))


class SoundSurvey(NamedTuple):
    """The sampling rate of the first recording of a corpus, and the mean duration in seconds."""

    rate: int
    mean_seconds: float


def survey_sounds(data: DataSettings) -> SoundSurvey:
    """Reads the headers of the first recordings of a corpus.

    Raises InputError if a file cannot be read, or none has samples.
    """
    files = training_files(data, "speech")
    folders = sound_folders(data.pairs)
    infos = []
    for pair in files.read_usable():
        info = sound_info(find_sound(pair.source, folders))
        if info.samples:
            infos.append(info)
        if len(infos) == _SURVEYED:
            break
    if not infos:
        raise InputError(f"{files}: no recording has samples")
    return SoundSurvey(infos[0].rate, sum(info.seconds for info in infos) / len(infos))


def sound_folders(names: str | Sequence[str] | None) -> list[Path]:
    """Returns the folders of files of recordings, in which relative names are looked up."""
    files = [names] if isinstance(names, str) else names or []
    return list(dict.fromkeys(Path(name).parent for name in files))
