"""The objective of a variational autoencoder."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_seq.losses.sequence_cross_entropy import ComparableCrossEntropy
from keras_seq.schedules.rates import cyclical_annealing, linear_annealing
from keras_seq.training.feed import Arrays, FitBatch
from keras_seq.training.objective import Objective
from keras_seq.training.vae_training_model import DivergenceLoss, VAETrainingModel


class LatentObjective(Objective):
    """The negative evidence lower bound: cross-entropy of the tokens plus KL divergence, summed."""

    def model(self, model: Any) -> keras.Model:
        training = self._training
        weight = _weight(training)
        return VAETrainingModel(model, weight, training.free_bits, training.micro_batches)

    def loss(self, model: Any = None) -> Any:
        loss = ComparableCrossEntropy(self._training.label_smoothing, "sum")
        return {"logits": loss, "divergence": DivergenceLoss()}

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        # `DivergenceLoss` uses the targets to find the rows that are not padding.
        targets = batch["target_output"]
        return (
            {"source": batch["source"], "target": batch["target_input"]},
            {"logits": targets, "divergence": targets},
            {"logits": weights, "divergence": weights},
        )


def _weight(training: Any) -> Any:
    """The weight of the divergence: a number, or a function of the update."""
    max_weight, steps = training.kl_weight, training.kl_annealing_steps
    if training.kl_annealing == "linear":
        return linear_annealing(steps, end=max_weight)
    if training.kl_annealing == "cyclical":
        weight = cyclical_annealing(steps, training.kl_cycles)
        return lambda step: max_weight * weight(step)
    return max_weight
