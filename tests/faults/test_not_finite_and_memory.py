"""Losses that are no numbers, and batches that do not fit: exit codes of their own."""

import re

import numpy as np
import pytest
from faults.training_process import Training, command, write_corpus

from keras_seq.run import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    write_corpus(folder)
    return folder


# From the fifth update on: the fourth is saved.
NAN = """
import keras
import keras_seq.training.optimizer as optimizer
class Loss(optimizer.SequenceCrossEntropy):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.calls = keras.Variable(0, dtype="int32", trainable=False, name="calls")
    def call(self, target, logits):
        self.calls.assign_add(1)
        ruin = keras.ops.where(self.calls > FIRST, float("nan"), 1.0)
        return super().call(target, logits) * ruin
optimizer.SequenceCrossEntropy = Loss
"""


def test_too_many_losses_in_a_row_that_are_no_numbers(folder):
    settings = {
        "training__max_steps": 100,
        "training__checkpoint_every": 2,
        "training__validate_every": 10**6,
        "training__max_skipped": 3,
    }
    # One call of the loss is the rehearsal's.
    code = NAN.replace("FIRST", "5")
    ended, said = Training(command(folder, "nan", **settings), code).end()
    assert ended == 3, said
    run = Run.open(folder / "nan")
    assert run.latest_step == 6 or run.latest_step == 8
    last = said.split("\n")[-1]
    assert "gradients are not finite" in last and "updates in a row were skipped" in last
    assert "training.max_skipped" in last and "training.learning_rate" in last
    assert f"step {run.latest_step} is saved" in last
    # The weights are those after the last good update.
    good, later = (
        np.fromfile(run.path / f"checkpoints/step-{step:08}/weights.safetensors", "u1")
        for step in (4, run.latest_step)
    )
    assert (good == later).all()


def test_a_batch_that_does_not_fit(folder):
    """A pair of 90,000 words: 16 attention maps of 90,000 x 90,000, half a terabyte."""
    lines = (folder / "train.tsv").read_text().splitlines()
    long = " ".join(["a b c"] * 30_000)
    (folder / "large.tsv").write_text("\n".join([*lines, f"{long}\ta"]) + "\n")
    settings = {
        "data__max_source_length": 100_000,
        "model__num_heads": 16,
        "training__max_steps": 3,
    }
    arguments = command(folder, "memory", **settings)
    arguments[3] = str(folder / "large.tsv")
    ended, said = Training(arguments).end()
    assert ended == 4, said
    last = said.split("\n")[-1]
    assert "out of memory with a batch of 1 pairs, " in last
    source_steps = re.search(r"([\d,]+) source and 2 target steps", last).group(1)
    assert 90_000 <= int(source_steps.replace(",", "")) <= 100_000
    assert "lower training.batch_tokens (300), data.max_source_length" in last
    assert Run.open(folder / "memory").latest_step is None
