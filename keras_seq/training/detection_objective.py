"""The objective of wake word detection: the frames after the end of a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_seq.evaluation.detection_values import (
    best_threshold,
    recording_counts,
    tolerance_of,
)
from keras_seq.inference.wake_words import Detection, WakeWordDetector, sigmoid
from keras_seq.losses.label_losses import NO_LABEL
from keras_seq.losses.masked_loss import MaskedLoss
from keras_seq.scoring import DetectionCounts
from keras_seq.text import EOS_ID, FIRST_WORD, UNK_ID
from keras_seq.training.feed import Arrays, FitBatch
from keras_seq.training.objective import Objective
from keras_seq.training.speech_objective import sound_inputs

# Shape letters: B rows, S frames, W words.


class FrameCrossEntropy(MaskedLoss):
    """Binary cross-entropy of the words of each frame, the sum over frames; internal.

    Labels are int32 `(B, S, W)`, -1 at padding, and predictions logits of the same shape.
    """

    def __init__(self) -> None:
        super().__init__("sum", "frame_cross_entropy")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        real = ops.not_equal(y_true, NO_LABEL)
        losses = ops.softplus(y_pred) - ops.cast(y_true, y_pred.dtype) * y_pred
        losses = ops.mean(ops.where(real, losses, 0.0), axis=2)
        return self.reduce(losses, real[..., 0], sample_weight)


class DetectionObjective(Objective):
    """Binary cross-entropy, in each frame, of whether a word has just ended."""

    def loss(self, model: Any) -> Any:
        return FrameCrossEntropy()

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        inputs = sound_inputs(batch["source"])
        settings: Any = self._settings
        step = settings.model.step_samples(settings.data.sample_rate)
        frames = inputs["samples"].shape[1] // step
        return inputs, labels_of(batch["target_output"], frames, settings), weights

    def tokens(self, batch: FitBatch) -> int:
        labels: Any = batch[1]
        return int(np.count_nonzero(labels[..., 0] != NO_LABEL))


def labels_of(targets: np.ndarray, frames: int, settings: Any) -> np.ndarray:
    """Converts target rows of a run to labels; see `frame_labels`."""
    words = settings.tokenizer.size - FIRST_WORD
    return frame_labels(targets, frames, settings.model.detection_steps, FIRST_WORD, words)


def frame_labels(
    targets: np.ndarray, frames: int, after: int, first_word: int, num_words: int
) -> np.ndarray:
    """Converts frames with the ids of the words that end in them, `(B, T)`, to labels.

    Returns int32 `(B, S, W)` for S `frames`: 1 in the `after` frames from the end of a word on,
    otherwise 0; -1 at padding.

    Example:

    >>> frame_labels(np.array([[1, 5, 1, 1, 3, 0]]), 6, 2, first_word=5, num_words=1)[0, :, 0]
    array([ 0,  1,  1,  0, -1, -1], dtype=int32)
    """
    targets = np.pad(targets, [(0, 0), (0, max(0, frames - targets.shape[1]))])[:, :frames]
    words = first_word + np.arange(num_words)
    ends = np.cumsum(targets[..., None] == words, axis=1)  # (B, S, W)
    before = np.pad(ends, [(0, 0), (after, 0), (0, 0)])[:, :frames]
    real = (targets >= UNK_ID) & (targets != EOS_ID)
    return np.where(real[..., None], ends > before, NO_LABEL).astype(np.int32)


class ValidatedDetections(NamedTuple):
    """Detections in the validation recordings.

    Attributes:
        loss: Mean binary cross-entropy over frames and words.
        threshold: The threshold with the best F1.
        counts: Counts of the detections with this threshold.
        hours: Duration of all recordings.
        expected: Words and times of their ends in each recording.
        found: Detections in each recording.
    """

    loss: float
    threshold: float
    counts: DetectionCounts
    hours: float
    expected: list[list[tuple[str, float]]]
    found: list[list[Detection]]


def validate_detections(
    detector: WakeWordDetector, batches: Iterable[Arrays], settings: Any
) -> ValidatedDetections:
    """Detects words in batches of recordings, with the threshold that is best for them."""
    audio, targets = _recordings(batches)
    logits = detector.logits(audio)
    loss = _mean_loss(logits, targets, settings)
    seconds = detector.frame_step / detector.sample_rate
    expected = [
        [
            (detector.words[row[i] - FIRST_WORD], (i + 1) * seconds)
            for i in np.flatnonzero(row != UNK_ID).tolist()
        ]
        for row in targets
    ]
    probabilities = [sigmoid(rows) for rows in logits]
    tolerance = tolerance_of(settings)
    threshold = best_threshold(detector, probabilities, expected, tolerance)
    found = [detector.detections(rows, threshold) for rows in probabilities]
    counts = sum(
        (
            recording_counts(*pair, detector.words, tolerance)
            for pair in zip(found, expected, strict=True)
        ),
        DetectionCounts(0, 0, 0),
    )
    hours = sum(map(len, audio)) / detector.sample_rate / 3600
    return ValidatedDetections(loss, threshold, counts, hours, expected, found)


def _recordings(batches: Iterable[Arrays]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns the samples of each recording, and its frames with the ids of words."""
    audio, targets = [], []
    for batch in batches:
        inputs = sound_inputs(batch["source"])
        frames = np.count_nonzero(batch["target_output"], axis=1) - 1
        rows = zip(*inputs.values(), batch["target_output"], frames, strict=True)
        for samples, length, target, count in rows:
            # A batch may be filled up with empty rows.
            if length:
                audio.append(samples[:length])
                targets.append(target[:count])
    return audio, targets


def _mean_loss(logits: Sequence[np.ndarray], targets: Sequence[np.ndarray], settings: Any) -> float:
    """Returns the mean binary cross-entropy; frames after the end of a recording have no word."""
    labels = []
    for rows, target in zip(logits, targets, strict=True):
        padded = np.full((1, len(rows)), UNK_ID)
        padded[0, : len(target)] = target[: len(rows)]
        labels.append(labels_of(padded, len(rows), settings)[0])
    x, y = np.concatenate(logits), np.concatenate(labels)
    return float(np.mean(np.logaddexp(0, x) - y * x))
