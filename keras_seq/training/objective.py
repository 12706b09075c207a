"""The base class of a task's part of a training: its model, its loss, and its batches."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_seq.settings import Settings
from keras_seq.training.feed import Arrays, FitBatch


class Objective:
    """What a task trains; made from the settings of a run.

    Target ids below `first_counted` do not count in the mean of the loss.
    """

    first_counted = 0

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._training = settings.training

    def model(self, model: Any) -> keras.Model:
        """Returns the model for `fit`: the run's model itself, or a wrapper with its weights."""
        train_model: keras.Model = model
        return train_model

    def loss(self, model: Any) -> Any:
        """Returns the loss to compile. It is a sum: the weights of a batch hold the divisor."""
        raise NotImplementedError

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        """Converts a batch and the float32 weights `(B,)` of its rows to the arguments of `fit`."""
        raise NotImplementedError

    def tokens(self, batch: FitBatch) -> int:
        """Counts the tokens of a batch that enter the speed of a training."""
        targets = batch[1]["logits"] if isinstance(batch[1], dict) else batch[1]
        return int(np.count_nonzero(targets))
