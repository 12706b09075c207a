"""A variational autoencoder is trained on the bound of its text's likelihood."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_seq.losses.sequence_cross_entropy import ComparableCrossEntropy
from keras_seq.schedules.rates import cyclical_annealing, linear_annealing
from keras_seq.settings import Settings
from keras_seq.training.feed import Arrays, FitBatch
from keras_seq.training.latent_teaching import DivergenceLoss, LatentTeaching


class LatentObjective:
    """Cross-entropy of the tokens, and the divergence of each line's code, both summed.

    Args:
        settings: Those of a run; see `Objective`.
    """

    first_counted = 0

    def __init__(self, settings: Settings) -> None:
        self._training = settings.training

    def model(self, model: Any) -> keras.Model:
        """The model with its weighted divergence beside its logits."""
        training = self._training
        return LatentTeaching(model, _weight(training), training.free_bits, training.micro_batches)

    def loss(self, model: Any = None) -> Any:
        """Of the logits, and of the divergence, which has its weight in it."""
        loss = ComparableCrossEntropy(self._training.label_smoothing, "sum")
        return {"logits": loss, "divergence": DivergenceLoss()}

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        """As that of a translation; the targets say of the divergence which rows are real."""
        targets = batch["target_output"]
        return (
            {"source": batch["source"], "target": batch["target_input"]},
            {"logits": targets, "divergence": targets},
            {"logits": weights, "divergence": weights},
        )

    def tokens(self, batch: FitBatch) -> int:
        """The real target tokens."""
        return int(np.count_nonzero(batch[1]["logits"]))


def _weight(training: Any) -> Any:
    """What the divergence is multiplied by: a number, or a function of the update."""
    most, steps = training.kl_weight, training.kl_annealing_steps
    if training.kl_annealing == "linear":
        return linear_annealing(steps, end=most)
    if training.kl_annealing == "cyclical":
        weight = cyclical_annealing(steps, training.kl_cycles)
        return lambda step: most * weight(step)
    return most
