"""The objective of translation and language models."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_seq.losses.sequence_cross_entropy import ComparableCrossEntropy
from keras_seq.text import PAD_ID
from keras_seq.training.carried_states import CarriedStates
from keras_seq.training.feed import Arrays, FitBatch, make_fit_batch, rows_of_pieces
from keras_seq.training.guided_alignment import GuidedAlignmentLoss
from keras_seq.training.minimum_risk import RiskLoss
from keras_seq.training.objective import Objective
from keras_seq.training.r_drop import AgreementLoss
from keras_seq.training.training_model import training_model
from keras_seq.training.word_distillation import DistillationLoss


class SequenceObjective(Objective):
    """Cross-entropy of the target tokens, with further losses by the settings."""

    def model(self, model: Any) -> keras.Model:
        if self._training.carry_state:
            return CarriedStates(model, rows_of_pieces(self._settings))
        train_model: keras.Model = training_model(model, self._settings)
        return train_model

    def loss(self, model: Any = None) -> Any:
        smoothing = self._training.label_smoothing
        loss = self._own_loss(PAD_ID) or ComparableCrossEntropy(smoothing, "sum")
        if self._training.teacher is not None:
            return DistillationLoss(loss, PAD_ID, self._training.teacher_weight)
        if self._training.r_drop:
            return AgreementLoss(loss, PAD_ID, self._training.r_drop)
        if self._training.minimum_risk:
            return {"logits": loss, "risk": RiskLoss(self._training.minimum_risk)}
        factor = self._training.guided_alignment
        return {"logits": loss, "attention": GuidedAlignmentLoss(factor)} if factor else loss

    @property
    def rows_of_a_pair(self) -> int:
        return self._training.minimum_risk_samples if self._training.minimum_risk else 1

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        alignment = batch.get("alignment")
        batch = {key: array for key, array in batch.items() if key != "alignment"}
        if self._training.guided_alignment:
            shape = (*batch["target_output"].shape, batch["source"].shape[1])
            batch["alignment"] = np.zeros(shape, np.float32) if alignment is None else alignment
        if not self._training.minimum_risk:
            return make_fit_batch(batch, weights)
        targets = batch["target_output"]
        inputs = {"source": batch["source"], "target": batch["target_input"], "reference": targets}
        outputs = {"logits": targets, "risk": np.zeros_like(weights)}
        return inputs, outputs, {"logits": weights, "risk": weights}
