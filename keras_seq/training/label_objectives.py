"""Objectives of classification and tagging."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.losses.label_losses import NO_LABEL, ChainLoss, ComparableLabelCrossEntropy
from keras_seq.models.inputs import label_inputs
from keras_seq.settings import Settings
from keras_seq.text import FIRST_LABEL, INSIDE_ID
from keras_seq.training.feed import Arrays, FitBatch
from keras_seq.training.objective import Objective
from keras_seq.training.r_drop import AgreementLoss
from keras_seq.training.training_model import training_model


def label_numbers(ids: np.ndarray) -> np.ndarray:
    """Converts ids of a corpus to label numbers from 0, and other ids to `NO_LABEL`."""
    return np.where(ids >= FIRST_LABEL, ids - FIRST_LABEL, NO_LABEL).astype(np.int32)


def tag_arrays(batch: Arrays) -> tuple[Arrays, np.ndarray]:
    """Returns the inputs of a tagger and the label numbers of the tags, int32 `(B, S)`.

    The features of the tokens are the characters of their words.
    """
    source, tags = batch["source"], np.zeros_like(batch["source"])
    steps = min(source.shape[1], batch["target_output"].shape[1])
    tags[:, :steps] = batch["target_output"][:, :steps]
    begins = (tags != 0) & (tags != INSIDE_ID)
    inputs = {"source": source, "begins": begins}
    if "features" in batch:
        inputs["characters"] = batch["features"]
    return inputs, label_numbers(tags)


class _LabelObjective(Objective):
    """Base class of objectives whose targets are labels."""

    first_counted = FIRST_LABEL

    def _cross_entropy(self) -> ComparableLabelCrossEntropy:
        return ComparableLabelCrossEntropy(self._training.label_smoothing, "sum")

    def tokens(self, batch: FitBatch) -> int:
        # Count source tokens, because the targets are labels.
        return int(np.count_nonzero(batch[0]["source"]))


class ClassificationObjective(_LabelObjective):
    """Cross-entropy of the label of each text."""

    def model(self, model: keras.Model) -> keras.Model:
        train_model: keras.Model = training_model(model, self._settings)
        return train_model

    def loss(self, model: keras.Model) -> Any:
        loss = self._own_loss(NO_LABEL) or self._cross_entropy()
        factor = self._training.r_drop
        return AgreementLoss(loss, NO_LABEL, factor) if factor else loss

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        inputs = {"source": batch["source"]}
        if "features" in batch:
            inputs["characters"] = batch["features"]
        return inputs, label_numbers(batch["target_output"][:, 0]), weights


class TaggingObjective(_LabelObjective):
    """Cross-entropy of the tag of each word, or of the tag sequence of each text (CRF)."""

    def model(self, model: keras.Model) -> keras.Model:
        return LogitsOfTagger(model)

    def loss(self, model: Any) -> Any:
        if model.field is None:
            return self._own_loss(NO_LABEL) or self._cross_entropy()
        return ChainLoss(model.field, "sum")

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        return *tag_arrays(batch), weights


class LogitsOfTagger(keras.Model):
    """A tagger that returns only logits, so training skips the tag search; internal."""

    def __init__(self, tagger: keras.Model) -> None:
        super().__init__(name="training_wrapper")
        self.tagger = tagger
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        return self.tagger(inputs, training=training)["logits"]


def make_label_loss(
    settings: Settings, model: keras.Model, train_model: keras.Model
) -> Callable[[Iterable[Arrays]], float]:
    """Compiles a function that computes the mean loss per label, without label smoothing.

    `train_model` is the compiled model, with the same weights as `model`. The loss of an ensemble
    is that of its mean probabilities.
    """
    plain = settings.training.model_copy(
        update={"label_smoothing": 0.0, "loss": None, "r_drop": 0.0}
    )
    tags = settings.task == "tag"
    kind = TaggingObjective if tags else ClassificationObjective
    objective = kind(settings.model_copy(update={"training": plain}))
    loss = objective.loss(model)
    logits_of = train_model if tags else model

    # Of each input of the model, in the order of `fit_batch`.
    ranks = {"source": 2, "begins": 2, "characters": 3}
    names = [name for name in ranks if name in model.input]

    def sums(labels: Any, *arrays: Any) -> Any:
        inputs = label_inputs(**dict(zip(names, arrays, strict=True)))
        count = ops.sum(ops.cast(ops.not_equal(labels, NO_LABEL), "float32"))
        return loss(labels, logits_of(inputs, training=False)), count

    all_ranks = [2 if tags else 1, *(ranks[name] for name in names)]
    compiled = backend.compiled(sums, model.variables, ranks=all_ranks)

    def mean(batches: Iterable[Arrays]) -> float:
        total = count = 0.0
        for batch in batches:
            inputs, labels, _ = objective.fit_batch(batch, np.ones(0, np.float32))
            parts = compiled(labels, *inputs.values())
            total += float(ops.convert_to_numpy(parts[0]))
            count += float(ops.convert_to_numpy(parts[1]))
        return total / max(count, 1.0)

    return mean
