"""Runs in version 1 of the run format can still be loaded and resumed.

`golden/format-1.tar.xz` has a Transformer and a recurrent run, trained for 150 updates on the
text in the archive, as keras-seq 0.1.0 wrote them, but without TensorBoard event files.
"""

import re

import keras
import numpy as np
import pytest
import safetensors.numpy
from golden_archive import unpack
from training.toy import quiet_train

import keras_seq
from keras_seq.run import Run
from keras_seq.run.models import load_model, named_weights
from keras_seq.settings import load_settings

STEPS = 150
# The recorded translations and their mean log-probabilities per token.
TRANSLATIONS = {
    "transformer": {"a": ("e f", -0.10489), "b": ("f e", -0.09384), "d": ("f f f", -0.09122)},
    "rnn": {"a": ("e f", -0.61675), "b": ("f", -0.56679), "c": ("e e e", -0.56301)},
}
every_family = pytest.mark.parametrize("family", TRANSLATIONS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    unpack("format-1.tar.xz", tmp_path)
    # The settings of the runs name the text by a relative path.
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arrays_of(run, step, part):
    return safetensors.numpy.load_file(run / f"checkpoints/step-{step:08}/{part}.safetensors")


def training_arrays(run, step):
    """Returns the arrays of a training without the numbers, which follow the order of layers."""
    arrays = arrays_of(run, step, "training")
    named = {re.sub(r"^optimizer/\d+", "optimizer", name): arrays[name] for name in arrays}
    assert len(named) == len(arrays)
    return named


@every_family
def test_run_of_format_1_loads_and_translates_as_recorded(folder, family):
    weights = named_weights(load_model(Run.open(folder / family)))
    stored = arrays_of(folder / family, STEPS, "weights")
    assert weights.keys() == stored.keys()
    for name, weight in weights.items():
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), stored[name])
    translator = keras_seq.Translator.load(folder / family)
    expected = TRANSLATIONS[family]
    for (best,), (text, score) in zip(
        translator.translate([*expected]), expected.values(), strict=True
    ):
        assert best.text == text
        assert best.score == pytest.approx(score, abs=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="was trained on TensorFlow")
@every_family
def test_training_of_a_format_1_run_resumes(folder, family):
    run = folder / family
    before = training_arrays(run, STEPS)
    settings = load_settings(
        file=run / "settings.toml", overrides={"training.max_steps": STEPS + 2}
    )
    result, said = quiet_train(settings, run, resume="require")
    assert f"resuming after step {STEPS}\n" in said
    assert result.steps == STEPS + 2
    after = training_arrays(run, STEPS + 2)
    assert after.keys() == before.keys()
    moved = {name for name in after if (after[name] != before[name]).any()}
    # Two updates later: the counter is 2 higher, dropout seeds changed, weights moved little.
    (counter,) = (name for name in after if name.endswith("/iteration"))
    assert (int(before[counter]), int(after[counter])) == (STEPS, STEPS + 2)
    assert any(name.startswith("seed/") for name in moved)
    for name in (name for name in moved if name.startswith("weight/")):
        assert np.abs(after[name] - before[name]).max() < 0.2, name
