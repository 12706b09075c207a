"""The objective of translation and language models."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_seq.losses.sequence_cross_entropy import ComparableCrossEntropy
from keras_seq.settings import Settings
from keras_seq.training.feed import Arrays, FitBatch, make_fit_batch
from keras_seq.training.guided_alignment import GuidedAlignmentLoss
from keras_seq.training.training_model import training_model


class SequenceObjective:
    """Cross-entropy of the target tokens and, with guided alignment, of the attention."""

    first_counted = 0

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._guided = settings.training.guided_alignment

    def model(self, model: Any) -> keras.Model:
        """See `training_model`."""
        train_model: keras.Model = training_model(model, self._settings)
        return train_model

    def loss(self, model: Any = None) -> Any:
        """Returns the loss of the logits or, with guided alignment, of both outputs."""
        loss = ComparableCrossEntropy(self._settings.training.label_smoothing, "sum")
        if not self._guided:
            return loss
        return {"logits": loss, "attention": GuidedAlignmentLoss(self._guided)}

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        """See `make_fit_batch`. Alignments are dropped without guided alignment."""
        if not self._guided:
            return make_fit_batch(
                {key: array for key, array in batch.items() if key != "alignment"}, weights
            )
        if "alignment" not in batch:
            shape = (*batch["target_output"].shape, batch["source"].shape[1])
            batch = {**batch, "alignment": np.zeros(shape, np.float32)}
        return make_fit_batch(batch, weights)

    def tokens(self, batch: FitBatch) -> int:
        """Counts the target tokens."""
        targets = batch[1]["logits"] if isinstance(batch[1], dict) else batch[1]
        return int(np.count_nonzero(targets))
