"""The objective of speech recognition, and the loss and texts of a validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.data import samples_of
from keras_seq.inference.sound_search import is_attentional, make_ctc_search, make_sound_search
from keras_seq.losses.ctc_loss import CTCLoss
from keras_seq.losses.sequence_cross_entropy import ComparableCrossEntropy
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, Tokenizer
from keras_seq.training.evaluation import token_results
from keras_seq.training.feed import Arrays, FitBatch
from keras_seq.training.objective import Objective
from keras_seq.training.training_model import training_model

# Shape letters: B rows, S samples, L labels, N texts.


class CTCObjective(Objective):
    """Connectionist temporal classification of the tokens of each recording."""

    def model(self, model: keras.Model) -> keras.Model:
        train_model: keras.Model = training_model(model, self._settings)
        return train_model

    def loss(self, model: Any = None) -> Any:
        return CTCLoss("sum")

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        return sound_inputs(batch["source"]), labels_of(batch["target_output"]), weights


class AttentionObjective(Objective):
    """Cross-entropy of the tokens of each recording, joined with CTC of the encoder.

    loss = (1 - w) cross-entropy + w CTC,  w = model.ctc_weight
    """

    @property
    def _ctc_weight(self) -> float:
        return float(getattr(self._settings.model, "ctc_weight", 0.0))

    def model(self, model: Any) -> keras.Model:
        return JointModel(model) if self._ctc_weight else model

    def loss(self, model: Any = None) -> Any:
        loss = ComparableCrossEntropy(self._training.label_smoothing, "sum")
        return {"logits": loss, "ctc": CTCLoss("sum")} if self._ctc_weight else loss

    def fit_batch(self, batch: Arrays, weights: np.ndarray) -> FitBatch:
        targets = batch["target_output"]
        inputs: Any = {"source": sound_inputs(batch["source"]), "target": batch["target_input"]}
        if not self._ctc_weight:
            return inputs, targets, weights
        share = np.float32(self._ctc_weight)
        return (
            inputs,
            {"logits": targets, "ctc": labels_of(targets)},
            {"logits": weights * (1 - share), "ctc": weights * share},
        )


class JointModel(keras.Model):
    """A recognizer with the outputs of its decoder and of CTC; internal.

    The wrapper keeps the order of the weights, on which checkpoints of the optimizer depend.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(name="training_wrapper")
        self.plain = model
        self.joint = model.with_ctc
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        return self.joint(inputs, training=training)


def sound_inputs(source: np.ndarray) -> Arrays:
    """Converts rows of sample ids and an end token, `(B, S + 1)`, to the inputs of a recognizer.

    Returns float32 `samples` `(B, S + 1)` and int32 `lengths` `(B,)`.
    """
    lengths = np.maximum((source != 0).sum(axis=1) - 1, 0).astype(np.int32)
    return {"samples": samples_of(source, lengths), "lengths": lengths}


def labels_of(target_output: np.ndarray) -> np.ndarray:
    """Converts rows of tokens and an end token to CTC labels `(B, L)`: the end becomes padding."""
    return np.where(target_output == EOS_ID, 0, target_output)


class Transcripts(NamedTuple):
    """The result of a validation: the mean loss per token, and token ids of N texts.

    `expected` and `found` are rows of ids, one pair for each recording.
    """

    loss: float
    expected: list[list[int]]
    found: list[list[int]]


def make_recognition(
    model: keras.Model, tokenizer: Tokenizer, search: SearchSettings
) -> Callable[[Iterable[Arrays]], Transcripts]:
    """Compiles a function that computes the loss of batches and their most probable texts."""
    beam_size = search.beam_size if search.beam_size > 1 else None
    attends = is_attentional(model)
    ctc_loss, decode = CTCLoss("sum"), make_ctc_search(beam_size, 1)
    find = make_sound_search(model, tokenizer, beam_size, 1, search)

    def recognize(samples: Any, lengths: Any, target_input: Any, target_output: Any) -> Any:
        sounds = {"samples": samples, "lengths": lengths}
        if attends:
            logits = model({"source": sounds, "target": target_input}, training=False)
            loss, found = ops.sum(token_results(target_output, logits)[0]), find(sounds)
        else:
            logits = model(sounds, training=False)
            loss, found = ctc_loss(_without_end(target_output), logits), decode(logits)
        return loss, found.labels[:, 0], found.lengths[:, 0]

    dtypes = ("float32", "int32", "int32", "int32")
    compiled = backend.compiled(recognize, model.variables, ranks=(2, 1, 2, 2), dtypes=dtypes)

    def transcripts(batches: Iterable[Arrays]) -> Transcripts:
        total = tokens = 0.0
        expected: list[list[int]] = []
        found: list[list[int]] = []
        for batch in batches:
            inputs, targets = sound_inputs(batch["source"]), batch["target_output"]
            result = compiled(*inputs.values(), batch["target_input"], targets)
            value, ids, lengths = map(ops.convert_to_numpy, result)
            total += float(value)
            labels = labels_of(targets)
            tokens += np.count_nonzero(targets if attends else labels)
            for row, length, truth in zip(ids, lengths, labels, strict=True):
                if truth.any():
                    expected.append(truth[truth != 0].tolist())
                    found.append(row[:length].tolist())
        return Transcripts(total / max(tokens, 1.0), expected, found)

    return transcripts


def _without_end(targets: Any) -> Any:
    return ops.where(ops.equal(targets, EOS_ID), 0, targets)
