"""Base class of objectives. An objective defines the training model, loss and batches."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_seq.settings import Settings
from keras_seq.training.feed import Arrays, FitBatch
from keras_seq.training.function_loss import FunctionLoss


class Objective:
    """Defines the training model, loss and batches of a task for the settings of a run.

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
        """Returns the loss to compile: a sum, which the weights of `fit_batch` turn into a mean."""
        raise NotImplementedError

    def _own_loss(self, ignored_id: int) -> FunctionLoss | None:
        """Returns the loss of a plugin that `training.loss` names, if any."""
        name = self._training.loss
        return None if name is None else FunctionLoss(name, ignored_id)

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        """Converts a batch and the float32 weights `(B,)` of its rows to the arguments of `fit`."""
        raise NotImplementedError

    @property
    def rows_of_a_pair(self) -> int:
        """Rows that the model computes at a time for each pair of a batch."""
        return 1

    def tokens(self, batch: FitBatch) -> int:
        """Counts the tokens of a batch, for the tokens per second of a training."""
        targets = batch[1]["logits"] if isinstance(batch[1], dict) else batch[1]
        return int(np.count_nonzero(targets))
