"""A task's part of a training: its model, its loss, and its batches."""

from __future__ import annotations

from typing import Any, Protocol

import keras
import numpy as np

from keras_seq.training.feed import Arrays, FitBatch


class Objective(Protocol):
    """What a task trains; made from the settings of a run.

    Target ids below `first_counted` do not count in the mean of the loss.
    """

    first_counted: int

    def model(self, model: Any) -> keras.Model:
        """Returns the model for `fit`: the run's model itself, or a wrapper with its weights."""

    def loss(self, model: Any) -> Any:
        """Returns the loss to compile. It is a sum: the weights of a batch hold the divisor."""

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        """Converts a batch and the float32 weights `(B,)` of its rows to the arguments of `fit`."""

    def tokens(self, batch: FitBatch) -> int:
        """Counts the tokens of a batch that enter the speed of a training."""
