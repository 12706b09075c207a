"""Encodes recordings as ids of their samples, and their text or the words in them as ids."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_seq.data import (
    SAMPLE_IDS,
    Span,
    TokenPair,
    find_sound,
    parse_spans,
    read_sound,
    sample_ids,
    sound_info,
)
from keras_seq.preparation.encoding import Encoded, PairEncoder, Separators
from keras_seq.preparation.files import training_files
from keras_seq.settings import DataSettings, Settings
from keras_seq.text import UNK_ID, Example, InputError, Tokenizer

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
        self._space = double[len(single) : len(double) - len(single)]

    def separators(self, generator: random.Random) -> Separators:
        return (), self._space

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


class SpanEncoder(SoundEncoder):
    """Encodes recordings, and for each frame the word that ends in it.

    The target of a recording has an id for each frame: that of the word whose span ends in the
    frame, or the unknown token. Recordings longer than `max_seconds` are cut into pieces, and each
    piece is filled up to whole frames with silence.

    Args:
        tokenizer: The tokenizer of the words.
        folders, rate, max_seconds: As for `SoundEncoder`.
        frame_step: Samples of a frame.
    """

    # Single words are joined to streams.
    max_parts = 6
    # The longest silence between joined recordings, in seconds.
    longest_gap = 1.0

    def __init__(
        self,
        tokenizer: Tokenizer,
        folders: Sequence[Path],
        rate: int,
        max_seconds: float,
        frame_step: int,
    ) -> None:
        self.frame_step = frame_step
        super().__init__(tokenizer, folders, rate, max_seconds, round(rate * max_seconds))
        self._frames = max(1, self.longest[0] // frame_step)

    def separators(self, generator: random.Random) -> Separators:
        frames = generator.randint(0, round(self.longest_gap * self.rate / self.frame_step))
        silence: Any = sample_ids(np.zeros(frames * self.frame_step))
        return silence, [UNK_ID] * frames

    def encode(self, chunk: Sequence[Example]) -> Encoded:
        """Returns samples and frames of some recordings, which are read one by one."""
        # A wrong span is found before the recordings are read.
        spans = [parse_spans(pair.target) if pair.usable else [] for pair in chunk]
        ids = {
            word: self.target.encode([word])[0]
            for word in sorted({span.word for row in spans for span in row})
        }
        for word, tokens in ids.items():
            if len(tokens) != 1:
                raise InputError(f"the word {word!r} is in no training recording")

        def pieces() -> Iterator[TokenPair]:
            for pair, row in zip(chunk, spans, strict=True):
                if not pair.usable:
                    yield TokenPair([], [])
                    continue
                samples = read_sound(find_sound(pair.source, self.folders), self.rate)
                ends = [(ids[span.word][0], span) for span in row]
                yield from self._pieces(pair, samples, ends)

        return Encoded(pieces())

    def _pieces(
        self, pair: Example, samples: np.ndarray, ends: Sequence[tuple[int, Span]]
    ) -> Iterator[TokenPair]:
        step, seconds = self.frame_step, len(samples) / self.rate
        frames = np.full(-(-len(samples) // step), UNK_ID)
        for number, span in ends:
            if span.begin >= seconds:
                raise InputError(
                    f"{pair.source}: lasts {seconds:.2f} seconds, but a span begins at "
                    f"{span.begin:g}"
                )
            end = seconds if span.end is None else min(span.end, seconds)
            frames[min(int(end * self.rate / step), len(frames) - 1)] = number
        if not len(samples):
            yield TokenPair([], [])
        samples = np.pad(samples, (0, -len(samples) % step))
        for begin in range(0, len(frames), self._frames):
            part = frames[begin : begin + self._frames]
            piece: Any = sample_ids(samples[begin * step : (begin + len(part)) * step])
            yield TokenPair(piece, part.tolist(), pair.weight)


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


def recording_folders(settings: Settings) -> list[Path]:
    """Returns the folders in which the recordings of the training and validation files lie."""
    data = settings.data
    return list(dict.fromkeys((*sound_folders(data.pairs), *sound_folders(data.valid_pairs))))
