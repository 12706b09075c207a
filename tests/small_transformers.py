"""Runs of small Transformers: one has random weights, one has memorized four sentences."""

from pathlib import Path

import keras
import numpy as np
import reference_transformer as reference

from keras_seq.losses import SequenceCrossEntropy
from keras_seq.run import Run
from keras_seq.run.models import build_run_model, named_weights, weight_arrays
from keras_seq.settings import load_settings
from keras_seq.text import Tokenizer

SOURCES = ["the cat sees the dog", "a dog", "the small dog runs to the cat and sleeps", "cat"]
TARGETS = ["der hund sieht die katze", "ein hund", "die katze schläft", "katze und hund"]


def random_run(path: Path, *, joint: bool = True, **overrides: object) -> tuple[Run, keras.Model]:
    """Returns a run and its model, in which all weights are random, also biases and gains."""
    run = _new_run(path, joint, {"model.num_encoder_layers": 2, "model.num_heads": 3, **overrides})
    model = build_run_model(run)
    reference.randomize(model)
    # Embeddings of unit variance spread the logits, so that scores differ clearly between models.
    for name, weight in named_weights(model).items():
        if name.endswith("embeddings"):
            weight.assign(np.random.default_rng(2).normal(size=weight.shape))
    run.save_checkpoint(1, {"weights": weight_arrays(model)}, {})
    return run, model


def learned_run(path: Path, *, joint: bool = False, **overrides: object) -> tuple[Run, keras.Model]:
    """Returns a run and its model, which translates `SOURCES` into `TARGETS`."""
    run = _new_run(path, joint, overrides)
    source, target = run.source_tokenizer, run.target_tokenizer
    keras.utils.set_random_seed(0)
    model = build_run_model(run)
    model.compile(keras.optimizers.Adam(0.02), SequenceCrossEntropy())
    outputs = padded([[*ids, 3] for ids in target.encode(TARGETS)])
    inputs = {
        "source": padded([[*ids, 3] for ids in source.encode(SOURCES)]),
        "target": padded([[2, *ids] for ids in target.encode(TARGETS)]),
    }
    model.fit(inputs, outputs, epochs=40, verbose=0)
    run.save_checkpoint(1, {"weights": weight_arrays(model)}, {})
    return run, model


def padded(rows: list[list[int]]) -> np.ndarray:
    """Pads rows of ids with 0 and stacks them."""
    width = max(map(len, rows))
    return np.array([[*row, *[0] * (width - len(row))] for row in rows], "int32")


def _new_run(path: Path, joint: bool, overrides: dict[str, object]) -> Run:
    settings = {
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.units": 18,
        "model.feedforward_units": 20,
        "model.num_heads": 2,
        "model.dropout": 0.0,
        "model.attention_dropout": 0.0,
        "model.activation_dropout": 0.0,
        "tokenizer.joint": joint,
        "search.max_length": 20,
    }
    run = Run.create(path, load_settings(overrides=settings | overrides))
    if joint:
        both = Tokenizer.train([*SOURCES, *TARGETS], size=290)
        run.save_vocabularies(both, both)
    else:
        run.save_vocabularies(
            Tokenizer.train(SOURCES, size=280), Tokenizer.train(TARGETS, size=281)
        )
    run.save_valid_lines(SOURCES, TARGETS)
    return run
