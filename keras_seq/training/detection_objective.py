"""The objective of wake word detection: the frames after the end of a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_seq.losses.label_losses import NO_LABEL
from keras_seq.losses.masked_loss import MaskedLoss
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
    """Cross-entropy of whether each word has just ended, for each frame."""

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


def labels_of_rows(
    targets: Sequence[np.ndarray], frames: Sequence[int], settings: Any
) -> list[np.ndarray]:
    """Converts the frames of each recording to labels `(S, W)` of so many frames.

    Frames after the end of a recording are silence, which has no word.
    """
    rows = []
    for row, count in zip(targets, frames, strict=True):
        padded = np.full((1, count), UNK_ID)
        padded[0, : len(row)] = row[:count]
        rows.append(labels_of(padded, count, settings)[0])
    return rows


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
