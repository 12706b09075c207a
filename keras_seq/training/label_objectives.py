"""Labels are learned: one for each text, or one for each word."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_seq.data.ids import INSIDE
from keras_seq.losses.label_losses import NO_LABEL, ChainLoss, ComparableLabelCrossEntropy
from keras_seq.settings import Settings
from keras_seq.text import FIRST_LABEL
from keras_seq.training.feed import Arrays, FitBatch


def label_numbers(ids: np.ndarray) -> np.ndarray:
    """Ids as a corpus has them to the numbers of labels, from 0; `NO_LABEL` where there is none."""
    return np.where(ids >= FIRST_LABEL, ids - FIRST_LABEL, NO_LABEL).astype(np.int32)


def tag_arrays(batch: Arrays) -> tuple[Arrays, np.ndarray]:
    """Inputs of a tagger, and the number of each tag, int32 `(B, S)`.

    Args:
        batch: As `BatchStream` makes it of tags.
    """
    source, tags = batch["source"], np.zeros_like(batch["source"])
    steps = min(source.shape[1], batch["target_output"].shape[1])
    tags[:, :steps] = batch["target_output"][:, :steps]
    begins = (tags != 0) & (tags != INSIDE)
    return {"source": source, "begins": begins}, label_numbers(tags)


class ClassificationObjective:
    """Cross-entropy of the label of each text.

    Args:
        settings: Those of a run; see `Objective`.
    """

    first_counted = FIRST_LABEL

    def __init__(self, settings: Settings) -> None:
        self._smoothing = settings.training.label_smoothing

    def model(self, model: keras.Model) -> keras.Model:
        """The run's model."""
        return model

    def loss(self, model: keras.Model) -> Any:
        """Of the logits."""
        return ComparableLabelCrossEntropy(self._smoothing, "sum")

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        """`{"source": (B, S)}`, the numbers of the labels `(B,)`, the weights."""
        return {"source": batch["source"]}, label_numbers(batch["target_output"][:, 0]), weights

    def tokens(self, batch: FitBatch) -> int:
        """Those of the texts."""
        return int(np.count_nonzero(batch[0]["source"]))


class TaggingObjective:
    """Cross-entropy of the tag of each word, or of all tags of a text together.

    Args:
        settings: Those of a run; see `Objective`.
    """

    first_counted = FIRST_LABEL

    def __init__(self, settings: Settings) -> None:
        self._smoothing = settings.training.label_smoothing

    def model(self, model: keras.Model) -> keras.Model:
        """A model of the logits alone: the best tags are not asked for while it learns."""
        return LogitsOfTagger(model)

    def loss(self, model: Any) -> Any:
        """Of the logits of the steps that begin words."""
        if model.field is None:
            return ComparableLabelCrossEntropy(self._smoothing, "sum")
        return ChainLoss(model.field, "sum")

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        """`{"source", "begins"}` `(B, S)`, the numbers of the tags `(B, S)`, the weights."""
        return *tag_arrays(batch), weights

    def tokens(self, batch: FitBatch) -> int:
        """Those of the texts."""
        return int(np.count_nonzero(batch[0]["source"]))


class LogitsOfTagger(keras.Model):
    """A tagger without the choice of tags; internal.

    Args:
        tagger: A tagger of `keras_seq.models`.
    """

    def __init__(self, tagger: keras.Model) -> None:
        super().__init__(name="teaching")
        self.tagger = tagger
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        return self.tagger(inputs, training=training)["logits"]
