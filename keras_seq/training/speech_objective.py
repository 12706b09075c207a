"""The objective of speech recognition, and the loss and texts of a validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.data import samples_of
from keras_seq.inference.recognizer import make_ctc_search
from keras_seq.losses.ctc_loss import CTCLoss
from keras_seq.text import EOS_ID
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
    model: keras.Model, beam_size: int
) -> Callable[[Iterable[Arrays]], Transcripts]:
    """Compiles a function that computes the loss of batches and their most probable texts."""
    loss = CTCLoss("sum")
    search = make_ctc_search(beam_size if beam_size > 1 else None, 1)

    def recognize(samples: Any, lengths: Any, labels: Any) -> Any:
        logits = model({"samples": samples, "lengths": lengths}, training=False)
        found = search(logits)
        return loss(labels, logits), found.labels[:, 0], found.lengths[:, 0]

    compiled = backend.compiled(
        recognize, model.variables, ranks=(2, 1, 2), dtypes=("float32", "int32", "int32")
    )

    def transcripts(batches: Iterable[Arrays]) -> Transcripts:
        total = tokens = 0.0
        expected: list[list[int]] = []
        found: list[list[int]] = []
        for batch in batches:
            inputs = sound_inputs(batch["source"])
            labels = labels_of(batch["target_output"])
            value, ids, lengths = map(ops.convert_to_numpy, compiled(*inputs.values(), labels))
            total += float(value)
            tokens += np.count_nonzero(labels)
            for row, length, truth in zip(ids, lengths, labels, strict=True):
                if truth.any():
                    expected.append(truth[truth != 0].tolist())
                    found.append(row[:length].tolist())
        return Transcripts(total / max(tokens, 1.0), expected, found)

    return transcripts
