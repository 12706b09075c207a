"""Non-finite losses and weights, and batches that exceed memory, in real processes."""

import re

import numpy as np
import pytest
import safetensors.numpy
from faults.training_process import Training, command, write_corpus
from run_helpers import forge

from keras_seq.run import Run

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    write_corpus(folder)
    return folder


# The counters of the optimizer choose the updates whose loss is NaN, because the loss may run on
# several shards of a batch and cannot count updates.
NAN = """
import keras
import keras_seq.training.optimizer as optimizer
import keras_seq.training.sequence_objective as objective
make, made = optimizer.SkippingAdam, []
def noted(*arguments, **options):
    made.append(make(*arguments, **options))
    return made[-1]
class Loss(objective.ComparableCrossEntropy):
    def call(self, target, logits):
        updates = 0
        if made[-1].built:
            updates = made[-1].iterations + keras.ops.cast(made[-1].skipped, "int64")
        ruin = keras.ops.where(WHERE, float("nan"), 1.0)
        return super().call(target, logits) * ruin
optimizer.SkippingAdam = noted
objective.ComparableCrossEntropy = Loss
"""


def test_too_many_nan_losses_in_a_row_end_training_with_exit_code_3(folder):
    settings = {
        "training__max_steps": 100,
        "training__checkpoint_every": 2,
        "training__validate_every": 10**6,
        "training__max_skipped": 3,
    }
    # Every update from the fifth on has a NaN loss; step 4 is saved before.
    code = NAN.replace("WHERE", "keras.ops.greater_equal(updates, 4)")
    ended, said = Training(command(folder, "nan", **settings), code).end()
    assert ended == 3, said
    run = Run.open(folder / "nan")
    assert run.checkpoints.latest_step == 6 or run.checkpoints.latest_step == 8
    last = said.split("\n")[-1]
    assert "gradients are not finite" in last and "updates in a row were skipped" in last
    assert "training.max_skipped" in last and "training.learning_rate" in last
    assert f"step {run.checkpoints.latest_step} is saved" in last
    # The last checkpoint has the weights of the last good update.
    good, later = (
        np.fromfile(run.path / f"checkpoints/step-{step:08}/weights.safetensors", "u1")
        for step in (4, run.checkpoints.latest_step)
    )
    assert (good == later).all()


def last_training(run):
    return safetensors.numpy.load_file(
        run.path / f"checkpoints/step-{run.checkpoints.latest_step:08}/training.safetensors"
    )


def counted(arrays, name):
    (found,) = (array for key, array in arrays.items() if key.endswith(f"/{name}"))
    return float(found)


def test_single_nan_loss_is_skipped_counted_and_reported(folder):
    settings = {
        "training__max_steps": 8,
        "training__checkpoint_every": 8,
        "training__validate_every": 10**6,
        "training__max_skipped": 2,
    }
    code = NAN.replace("WHERE", "keras.ops.equal(updates, 3)")
    ended, said = Training(command(folder, "once", **settings), code).end()
    assert ended == 0, said
    assert "gradients are not finite; 1 updates skipped so far" in said
    run = Run.open(folder / "once")
    arrays = last_training(run)
    assert run.checkpoints.latest_step == 8
    # The fourth of eight updates was skipped.
    assert (counted(arrays, "skipped"), counted(arrays, "iteration")) == (1, 7)


def test_non_finite_weights_are_neither_saved_nor_loaded(folder):
    """The test itself corrupts the weights, first in memory and then on disk."""
    code = """
import keras_seq.training.loop as loop
after = loop.TrainingLoop._after_update
def ruined(self, *arguments, **options):
    after(self, *arguments, **options)
    if self.limit.step == 5:
        weight = self.model.trainable_variables[0]
        weight.assign(weight * float("inf"))
loop.TrainingLoop._after_update = ruined
"""
    settings = {
        "training__max_steps": 9,
        "training__checkpoint_every": 2,
        "training__validate_every": 10**6,
        # High enough that skipped updates do not end the training before the save fails.
        "training__max_skipped": 100,
    }
    arguments = command(folder, "weights", **settings)
    ended, said = Training(arguments, code).end()
    assert ended == 3, said
    assert "not saved: " in said and "holds a value that is not finite" in said
    assert "lower training.learning_rate" in said.split("\n")[-1]
    run = Run.open(folder / "weights")
    assert run.checkpoints.steps == [2, 4]
    assert not list(run.path.rglob(".tmp-*"))
    path = run.path / "checkpoints" / "step-00000004"
    weights = safetensors.numpy.load_file(path / "weights.safetensors")
    name = sorted(weights)[0]
    weights[name].flat[0] = np.nan
    forge(path, "weights.safetensors", safetensors.numpy.save(weights))
    ended, said = Training(arguments).end()
    assert ended == 0, said
    assert f"step-00000004: damaged: weights.safetensors: {name} holds a value that is not" in said
    assert "step-00000002: read instead" in said
    assert "resuming after step 2\n" in said
    assert Run.open(run.path).checkpoints.latest_step == 9


def test_batch_too_large_for_memory_ends_training_with_exit_code_4(folder):
    """A pair of 90,000 words needs 16 attention maps of 90,000 x 90,000, half a terabyte."""
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
    assert Run.open(folder / "memory").checkpoints.latest_step is None
