"""Wake words in recordings and in streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from keras_seq import backend
from keras_seq.data.sounds import read_sounds
from keras_seq.data.spans import NO_SPANS
from keras_seq.inference.predictor import predict_by_length
from keras_seq.inference.recognizer import pad_audio
from keras_seq.inference.run_predictor import RunPredictor
from keras_seq.run import Run
from keras_seq.settings import SearchSettings
from keras_seq.text import FIRST_WORD, Tokenizer

# Frames of a stream that are computed in one call.
_PIECE = 16


class Detection(NamedTuple):
    """A word, the time in seconds at which it is detected, and its probability."""

    seconds: float
    word: str
    probability: float


class WakeWordDetector(RunPredictor):
    """Detects words in recordings and streams with `models.TriggerWordDetector`.

    A word is detected in the first frame in which its probability reaches the threshold, once in
    the `hold` frames after. A recording is followed by as many frames of silence, so that a word at
    its end is detected.

    Args:
        model: `models.TriggerWordDetector`.
        words: The W words of the model.
        sample_rate: Samples per second of the audio that the model reads.
        frame_step: Samples of a frame.
        hold: Frames in which a word is detected once.
        threshold: Least probability of a detection.
        batch_size: Recordings per batch.
    """

    task = "wake-word"
    supports_ensembles = False
    own_options = frozenset({"threshold"})

    def __init__(
        self,
        model: Any,
        words: Sequence[str],
        *,
        sample_rate: int,
        frame_step: int,
        hold: int,
        threshold: float = 0.5,
        batch_size: int = 16,
    ) -> None:
        self.model = model
        self.words = list(words)
        self.sample_rate = sample_rate
        self.frame_step = frame_step
        self.hold = hold
        self.threshold = threshold
        self.batch_size = batch_size
        self._compiled = backend.compiled(
            lambda samples, lengths: model({"samples": samples, "lengths": lengths}),
            model.variables,
            (2, 1),
            ("float32", "int32"),
        )

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        section: Any = run.settings.model
        rate = run.settings.data.sample_rate or 0
        return cls(
            model,
            words_of_vocabulary(run.target_tokenizer),
            sample_rate=rate,
            frame_step=section.step_samples(rate),
            hold=section.detection_steps,
            **{
                "threshold": threshold_of(run),
                "batch_size": (search or run.settings.search).batch_size,
                **options,
            },
        )

    def detect_files(self, paths: Sequence[str | os.PathLike[str]]) -> list[list[Detection]]:
        """Returns the detections in each file, in the order of time.

        Files of another rate are converted. Raises InputError if a file is not a recording that can
        be read.
        """
        return [found for found, _ in self._read(paths)]

    def _read(
        self, paths: Sequence[str | os.PathLike[str]]
    ) -> Iterator[tuple[list[Detection], float]]:
        for group in read_sounds(paths, self.sample_rate):
            seconds = [len(samples) / self.sample_rate for samples in group]
            yield from zip(self.detect(group), seconds, strict=True)

    def detect_with_durations(
        self, paths: Sequence[str | os.PathLike[str]]
    ) -> tuple[list[list[Detection]], list[float]]:
        """Returns the detections in each file, and the durations of the files in seconds."""
        results = list(self._read(paths))
        return [found for found, _ in results], [seconds for _, seconds in results]

    def detect(self, audio: Sequence[Any]) -> list[list[Detection]]:
        """Returns the detections in each recording, in the order of time.

        `audio` are float arrays `(samples,)` from -1 to 1 at the rate of the model.
        """
        return [
            self.detections(probabilities, self.threshold)
            for probabilities in self.probabilities(audio)
        ]

    def probabilities(self, audio: Sequence[Any]) -> list[np.ndarray]:
        """Returns the probabilities of the words in each frame, float32 `(S, W)`."""
        return [sigmoid(logits) for logits in self.logits(audio)]

    def logits(self, audio: Sequence[Any]) -> list[np.ndarray]:
        """Returns the logits of the words in each frame, float32 `(S, W)`."""
        silence = np.zeros(self.hold * self.frame_step, np.float32)
        arrays = [np.concatenate([np.asarray(array, "float32"), silence]) for array in audio]
        return predict_by_length(arrays, self._logits, self.batch_size)

    def _logits(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        samples, lengths = pad_audio(arrays)
        logits = backend.to_numpy(self._compiled(samples, lengths))
        return [
            row[: length // self.frame_step] for row, length in zip(logits, lengths, strict=True)
        ]

    def detections(self, probabilities: np.ndarray, threshold: float) -> list[Detection]:
        """Returns the detections in frames with these probabilities `(S, W)`."""
        found = [
            Detection(
                (frame + 1) * self.frame_step / self.sample_rate,
                word,
                float(probabilities[frame, number]),
            )
            for number, word in enumerate(self.words)
            for frame in first_frames(probabilities[:, number], threshold, self.hold)
        ]
        return sorted(found)

    def stream(self) -> WakeWordStream:
        """Returns a new stream, which takes samples as they arrive."""
        return WakeWordStream(self)


class WakeWordStream:
    """A stream of samples in which a `WakeWordDetector` detects words.

    Example:

        stream = WakeWordDetector.load("runs/hey").stream()
        while True:
            for detection in stream.feed(microphone.read()):
                print(detection.word, detection.seconds)
    """

    def __init__(self, detector: WakeWordDetector) -> None:
        self._detector = detector
        step = detector.model.stream_step
        state = detector.model.initial_state(1)
        self._names = list(state)
        self._state = [backend.to_numpy(state[name]) for name in self._names]

        def advance(samples: Any, *values: Any) -> Any:
            state = dict(zip(self._names, values, strict=True))
            outputs = step({"samples": samples, "state": state})
            return outputs["logits"], [outputs["state"][name] for name in self._names]

        ranks = [2, *(value.ndim for value in self._state)]
        dtypes = ["float32", *(str(value.dtype) for value in self._state)]
        self._advance = backend.compiled(advance, step.variables, ranks, dtypes)
        self._rest = np.zeros(0, np.float32)
        self._frames = 0
        # The first frame in which each word can be detected again.
        self._free_from = [0] * len(detector.words)

    def feed(self, samples: Any) -> list[Detection]:
        """Takes the next samples, a float array `(N,)` of any size; returns new detections.

        They come with a delay of at most 16 frames, because that many are computed together.
        """
        detector = self._detector
        self._rest = np.concatenate([self._rest, np.asarray(samples, np.float32)])
        size = _PIECE * detector.frame_step
        found: list[Detection] = []
        while len(self._rest) >= size:
            logits, state = self._advance(self._rest[None, :size], *self._state)
            self._state = [backend.to_numpy(value) for value in state]
            self._rest = self._rest[size:]
            found += self._detections(sigmoid(backend.to_numpy(logits)[0]))
        return found

    def _detections(self, probabilities: np.ndarray) -> list[Detection]:
        detector = self._detector
        found = []
        for frame, row in enumerate(probabilities, self._frames):
            for number, word in enumerate(detector.words):
                if frame >= self._free_from[number] and row[number] >= detector.threshold:
                    self._free_from[number] = frame + detector.hold
                    seconds = (frame + 1) * detector.frame_step / detector.sample_rate
                    found.append(Detection(seconds, word, float(row[number])))
        self._frames += len(probabilities)
        return found


def shown_detections(found: Sequence[Detection]) -> str:
    """Returns detections as a line of text, "-" without any.

    Example:

    >>> shown_detections([Detection(0.5, "stop", 0.9)])
    'stop:0.50'
    """
    return " ".join(f"{one.word}:{one.seconds:.2f}" for one in found) or NO_SPANS


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Returns probabilities of logits of any size, without an overflow."""
    probabilities: np.ndarray = np.exp(-np.logaddexp(0, -logits))
    return probabilities


def first_frames(probabilities: np.ndarray, threshold: float, hold: int) -> list[int]:
    """Returns frames that reach the threshold, none within `hold` frames after another.

    Example:

    >>> first_frames(np.array([0.1, 0.9, 0.9, 0.2, 0.8]), 0.5, 3)
    [1, 4]
    """
    frames: list[int] = []
    for frame in np.flatnonzero(probabilities >= threshold).tolist():
        if not frames or frame >= frames[-1] + hold:
            frames.append(frame)
    return frames


def words_of_vocabulary(tokenizer: Tokenizer) -> list[str]:
    """Returns the words of a vocabulary of words, in the order of their ids."""
    return [piece.text.removeprefix("\u2581") for piece in tokenizer.pieces[FIRST_WORD:]]


def threshold_of(run: Run) -> float:
    """Returns the threshold of the loaded checkpoint of a run; 0.5 if none was fitted."""
    return float(run.logs.validation_values("threshold").get(run.loaded_step or 0, 0.5))
