"""Losses that are no numbers, and batches that do not fit: exit codes of their own."""

import resource
import sys

import numpy as np
import pytest
from faults.training_process import Training, command, write_corpus
from training.toy import write_pairs

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


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_batch_that_does_not_fit(folder):
    """20,000 pairs in one batch: logits of 120,000 x 277 floats, a few times over."""
    write_pairs(folder / "large.tsv", 20_000, seed=1)
    code = f"""
import resource
import keras_seq.training.loop as loop
rehearse = loop.rehearse
def limited(*arguments):
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * {resource.getpagesize()} + 300 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    rehearse(*arguments)
loop.rehearse = limited
"""
    arguments = command(folder, "memory", training__batch_tokens=120_000, training__max_steps=3)
    arguments[3] = str(folder / "large.tsv")
    ended, said = Training(arguments, code).end()
    assert ended == 4, said
    last = said.split("\n")[-1]
    assert "out of memory with a batch of 20,000 pairs, 6 source and 6 target steps" in last
    assert "lower training.batch_tokens (120,000)" in last
    assert Run.open(folder / "memory").latest_step is None
