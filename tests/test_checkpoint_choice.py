"""The Python argument `which` loads the best, the latest or a numbered checkpoint."""

import json

import keras
import numpy as np
import pytest
from three_checkpoints import LATEST, MEANT, MIDDLE, stored_weights, with_three_checkpoints

import keras_seq
from keras_seq.run import Run
from keras_seq.run.ensembles import open_ensemble
from keras_seq.run.models import load_ensemble, load_models, named_weights
from keras_seq.text import InputError

every_checkpoint = pytest.mark.parametrize("which", MEANT)


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    return with_three_checkpoints(tiny_run, tmp_path_factory.mktemp("which") / "run")


def assert_holds(model, run, step):
    weights = named_weights(model)
    stored = stored_weights(run, step)
    assert weights.keys() == stored.keys()
    for name, weight in weights.items():
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), stored[name])


@every_checkpoint
def test_translator_holds_the_weights_of_the_checkpoint(run, which):
    assert_holds(keras_seq.Translator.load(run, which=which).model, run, MEANT[which])


def test_a_step_may_be_a_number(run):
    assert_holds(keras_seq.Translator.load(run, which=MIDDLE).model, run, MIDDLE)


@pytest.mark.parametrize("kind", ["classifier", "tagger"])
@every_checkpoint
def test_label_runs_hold_the_weights_of_the_checkpoint(kind, which, request, tmp_path):
    run = with_three_checkpoints(request.getfixturevalue(f"{kind}_run"), tmp_path / "run")
    loaded = getattr(keras_seq, kind.capitalize()).load(run, which=which)
    assert_holds(loaded.model, run, MEANT[which])


@every_checkpoint
def test_every_run_of_an_ensemble_holds_this_checkpoint(run, which):
    runs = open_ensemble(Run.open(run), [run], which)
    for model in load_ensemble(runs, which).models:
        assert_holds(model, run, MEANT[which])
    assert [one.loaded_step for one in runs] == [MEANT[which]] * 2


def test_run_of_an_ensemble_without_the_step_is_named(run, tiny_run):
    with pytest.raises(InputError, match=rf"^{tiny_run}/checkpoints: received checkpoint '20'"):
        load_models(Run.open(run), [tiny_run], which=MIDDLE)


@pytest.mark.parametrize("which", ["newest", "", "15", 15, -10, "1_0", "٢٠", "9" * 5000, True, 1.5])
def test_another_checkpoint_raises_an_error_with_the_stored_steps(run, which):
    with pytest.raises(InputError) as caught:
        keras_seq.Translator.load(run, which=which)
    assert str(caught.value) == (
        f"{run}/checkpoints: received checkpoint {str(which)[:40]!r}, expected best, latest or a "
        "stored step: 10, 20, 30"
    )


def test_damaged_checkpoint_of_a_step_is_not_replaced_by_another(run, tmp_path):
    copy = with_three_checkpoints(run, tmp_path / "run")
    damaged = copy / "checkpoints" / f"step-{MIDDLE:08}" / "weights.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\0")
    with pytest.raises(InputError, match="step-00000020: damaged"):
        keras_seq.Translator.load(copy, which=MIDDLE, notice=[].append)


def test_record_names_the_checkpoint_that_replaced_a_damaged_one(run, tmp_path):
    from keras_seq.serving.publishing import checkpoint_record

    copy = with_three_checkpoints(run, tmp_path / "copy")
    damaged = copy / "checkpoints" / "step-00000010" / "weights.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\0")
    opened = Run.open(copy, notice=[].append)
    load_models(opened)
    record = json.loads(checkpoint_record([opened]))
    assert record == {"runs": [{"name": "copy", "step": LATEST}]}
