"""Snapshot ensembles: checkpoints at the ends of cycles, and the mean of their probabilities."""

import numpy as np
import pytest
from keras import ops
from training.toy import quiet_train, tensors_of, toy_settings

import keras_seq
from keras_seq.run import Run
from keras_seq.run.averaging import average_run
from keras_seq.run.models import load_model
from keras_seq.settings import load_settings

# A warmup of one update and two cycles of three. Only the newest checkpoint is kept otherwise.
ENDS = [4, 7]
CYCLES = {
    "training__schedule": "cosine",
    "training__cycles": 2,
    "training__warmup_steps": 1,
    "training__max_steps": 7,
    "training__keep_checkpoints": 1,
    "training__checkpoint_every": 3,
    "training__validate_every": 100,
    "training__ema": 0.0,
}
INPUTS = {
    "source": np.array([[5, 6, 7, 3], [8, 3, 0, 0]]),
    "target": np.array([[2, 7, 6], [2, 8, 0]]),
}


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory):
    """A run with the checkpoints at the ends of two cycles."""
    folder = tmp_path_factory.mktemp("snapshots")
    quiet_train(toy_settings(folder, **CYCLES), folder / "run")
    return folder / "run"


def probabilities(run, which="best"):
    """Returns the probabilities of the tokens after those of `INPUTS`."""
    logits = ops.convert_to_numpy(load_model(Run.open(run), which)(INPUTS)).astype("f8")
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.slow
def test_checkpoints_at_the_ends_of_cycles_are_kept(snapshots):
    store = Run.open(snapshots).checkpoints
    assert store.steps == store.permanent_steps == ENDS


@pytest.mark.slow
def test_ensemble_of_checkpoints_has_the_mean_of_their_probabilities(
    snapshots, tmp_path, keras_seq_command
):
    outcome = keras_seq_command(
        "average", snapshots, tmp_path / "new", "--cycles", 2, "--probabilities"
    )
    assert outcome.code == 0, outcome.err
    assert "an ensemble of the models after steps 4, 7" in outcome.err
    new = Run.open(tmp_path / "new")
    assert new.settings.model.members == 2
    each = [probabilities(snapshots, step) for step in ENDS]
    assert np.abs(each[0] - each[1]).max() > 1e-3
    np.testing.assert_allclose(probabilities(new.path), np.mean(each, axis=0), rtol=1e-4)
    # The checkpoints of an ensemble have several members, here two of random weights.
    for step in (20, 30):
        generator = np.random.default_rng(step)
        weights = {
            name: generator.normal(size=array.shape).astype(array.dtype)
            for name, array in tensors_of(new.path, 7).items()
        }
        new.make_permanent(step)
        new.save_checkpoint(step, {"weights": weights}, {})
    average_run(new.path, tmp_path / "all", 2, of="cycles", probabilities=True)
    assert Run.open(tmp_path / "all").settings.model.members == 4
    expected = np.mean([probabilities(new.path, step) for step in (20, 30)], axis=0)
    np.testing.assert_allclose(probabilities(tmp_path / "all"), expected, rtol=1e-4)
    # One checkpoint is no ensemble.
    average_run(snapshots, tmp_path / "one", which=["latest"], probabilities=True)
    np.testing.assert_allclose(probabilities(tmp_path / "one"), each[1], rtol=1e-6)


@pytest.mark.slow
def test_too_many_cycles_are_one_line(snapshots, tmp_path, keras_seq_command):
    outcome = keras_seq_command("average", snapshots, tmp_path / "new", "--cycles", 3)
    assert outcome.code == 2 and not (tmp_path / "new").exists()
    assert "has 2 checkpoints at the end of a cycle, expected at least 3" in outcome.error
    for cycles, schedule, message in (
        (10, "cosine", "training.cycles: received 10, expected at most the 6 updates after the"),
        (2, "constant", "training.cycles: received 2 with training.schedule 'constant'"),
    ):
        changed = {"training__cycles": cycles, "training__schedule": schedule}
        with pytest.raises((keras_seq.InputError, ValueError), match=message):
            settings = toy_settings(snapshots.parent, **(CYCLES | changed))
            keras_seq.train(settings, tmp_path / "new", notice=[].append)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model.family": "lm-rnn", "task": "language-model"}, "'lm-rnn' has no model.members"),
        ({"training.guided_alignment": 0.1, "data.alignments": "links"}, "expected 0 with model.m"),
        ({"model.members": 60}, "model.members: received 120, expected"),
    ],
)
def test_model_that_cannot_be_an_ensemble_is_refused(tmp_path, values, message):
    run = Run.create(tmp_path / "run", load_settings(overrides=values))
    for step in (1, 2):
        # The settings are read before the weights.
        run.save_checkpoint(step, {"weights": {"w": np.zeros(10**7, "f4")}}, {})
    with pytest.raises(keras_seq.InputError, match=message) as caught:
        average_run(run.path, tmp_path / "new", 2, probabilities=True)
    assert "\n" not in str(caught.value) and not (tmp_path / "new").exists()


def test_methods_of_the_training_do_not_matter_to_an_ensemble(tmp_path):
    from keras_seq.run.checkpoint_ensemble import ensemble_settings

    values = {"training.scheduled_sampling": "linear", "training.cycles": 2}
    settings = load_settings(overrides={**values, "training.schedule": "cosine"})
    ensemble = ensemble_settings(Run(tmp_path, settings), 2)
    assert ensemble.model.members == 2 and ensemble.training.cycles == 2
