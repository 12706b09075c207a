"""Losses, metrics and callbacks of plugins in trainings, against those of keras-seq and numpy."""

from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops
from weekly import weekly_but

import keras_seq
from keras_seq.evaluation.plugin_values import plugin_values
from keras_seq.plugins import PluginError, import_plugin
from keras_seq.training.function_loss import FunctionLoss

PLUGIN = Path(__file__).parents[2] / "examples" / "plugins" / "focal.py"
TINY = {
    "tokenizer.size": 280,
    "training.batch_tokens": 256,
    "training.learning_rate": 0.01,
    "training.warmup_steps": 10,
    "training.max_steps": 20,
    "training.validate_every": 20,
    "training.label_smoothing": 0.0,
    "training.sample_count": 0,
}


def cross_entropy(ids, logits):
    return keras.losses.sparse_categorical_crossentropy(ids, logits, from_logits=True)


@pytest.mark.parametrize("members", [0, 3])
@pytest.mark.parametrize("padding", [0, -1])
def test_loss_is_the_sum_over_what_is_not_padding(members, padding):
    generator = np.random.default_rng(1)
    ids = generator.integers(1, 7, (4, 5))
    ids[1, 3:] = ids[2, :] = padding
    logits = generator.normal(size=(4, 5, *([members] if members else []), 7))
    weights = generator.random(4)
    logits[1, 3:] = np.nan

    logits_of_models = logits if members else logits[:, :, None]
    expected = 0.0
    for row, step in zip(*np.nonzero(ids != padding), strict=True):
        z = logits_of_models[row, step]
        log_p = (z - np.log(np.exp(z).sum(-1, keepdims=True)))[:, ids[row, step]]
        expected += weights[row] * np.mean(-log_p * (1 - np.exp(log_p)) ** 2)

    import_plugin(str(PLUGIN))
    loss = FunctionLoss("focal", padding)
    result = loss(ops.array(ids), ops.array(logits, "float32"), ops.array(weights, "float32"))
    assert float(result) == pytest.approx(expected, rel=1e-5)


def test_padding_has_no_gradient(monkeypatch):
    tf = pytest.importorskip("tensorflow")
    import_plugin(str(PLUGIN))
    logits = tf.Variable([[[0.5, 1.0, 2.0], [float("nan")] * 3, [0.0, -1e30, 0.0]]])
    with tf.GradientTape() as tape:
        value = FunctionLoss("focal", 0)(tf.constant([[2, 0, 0]]), logits)
    gradient = tape.gradient(value, logits).numpy()
    assert np.isfinite(gradient).all()
    assert (gradient[0, 1:] == 0).all() and (gradient[0, 0] != 0).all()


def test_loss_of_a_wrong_shape_is_refused():
    keras_seq.register_loss("scalar")(lambda ids, logits: ops.sum(logits))
    with pytest.raises(PluginError, match="the loss 'scalar': received a result of shape"):
        FunctionLoss("scalar", 0)(ops.array([[1]]), ops.zeros((1, 1, 3)))


def corpus(folder, task):
    lines = ["the dog runs", "a cat sleeps", "dogs bark far", "a bird"] * 8
    rights = {
        "translate": [line[::-1] for line in lines],
        "classify": ["animal" if "cat" in line else "other" for line in lines],
        "tag": [" ".join("N" if len(word) > 2 else "D" for word in line.split()) for line in lines],
    }[task]
    path = folder / f"{task}.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(lines, rights, strict=True)))
    name = "pairs" if task == "translate" else "labeled"
    return {f"data.{name}": str(path), f"data.valid_{name}": str(path)}


MODELS = {
    "translate": {"model.family": "rnn", "model.embedding_units": 8, "model.encoder_units": 8}
    | {"model.decoder_units": 8, "model.attention_units": 8, "model.dropout": 0.0},
    "classify": {"model.family": "classifier-bag", "model.embedding_units": 8},
    "tag": {"model.family": "tagger-rnn", "model.embedding_units": 8, "model.units": 8},
}


@pytest.mark.slow
@pytest.mark.parametrize("task", weekly_but(MODELS, "classify"))
def test_cross_entropy_of_a_plugin_trains_the_same_weights(task, tmp_path):
    keras_seq.register_loss("own-cross-entropy")(cross_entropy)
    weights = []
    for loss in ({}, {"training.loss": "own-cross-entropy"}):
        values = TINY | MODELS[task] | corpus(tmp_path, task) | {"task": task} | loss
        settings = keras_seq.load_settings(overrides=values)
        run = tmp_path / f"run{len(weights)}"
        keras_seq.train(settings, run, notice=lambda line: None)
        opened = keras_seq.Run.open(run)
        weights.append(keras_seq.run.models.load_model(opened).get_weights())
    assert keras_seq.Run.open(run).settings.plugins == [__name__]
    for ours, plugin in zip(*weights, strict=True):
        np.testing.assert_allclose(plugin, ours, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_training_uses_the_loss_of_the_plugin(tmp_path):
    keras_seq.register_loss("nothing")(lambda ids, logits: 0 * logits[:, 0])
    values = TINY | MODELS["classify"] | corpus(tmp_path, "classify") | {"task": "classify"}
    weights = []
    for steps in (1, 20):
        changed = {"training.loss": "nothing", "training.max_steps": steps}
        settings = keras_seq.load_settings(overrides=values | changed)
        run = tmp_path / f"run{steps}"
        keras_seq.train(settings, run, notice=lambda line: None)
        model = keras_seq.run.models.load_model(keras_seq.Run.open(run))
        weights.append(model.get_weights())
    # Nothing is learned from a loss that is always 0.
    for one, twenty in zip(*weights, strict=True):
        # Averaging the weights rounds them.
        np.testing.assert_allclose(one, twenty, rtol=1e-5, atol=1e-6)


def test_metric_that_fails_names_its_plugin():
    keras_seq.register_metric("broken")(lambda answers, references: answers[99])
    with pytest.raises(PluginError, match=f"plugin {__name__}: the metric 'broken': IndexError"):
        plugin_values(["a"], ["b"], ["broken"], None)


@pytest.mark.slow
def test_example_trains_monitors_and_evaluates_with_its_names(tmp_path, keras_seq_command):
    files = corpus(tmp_path, "tag")
    settings = {
        **TINY,
        **MODELS["tag"],
        "model.crf": "false",
        "training.loss": "focal",
        "training.monitor": "whole-lines",
        "training.callbacks": "rates",
    }
    run = tmp_path / "run"
    outcome = keras_seq_command(
        *("train", run, "--task", "tag", "--import", PLUGIN),
        *("--labeled", files["data.labeled"], "--valid-labeled", files["data.labeled"]),
        *(f"--set={key}={value}" for key, value in settings.items()),
    )
    assert outcome.code == 0, outcome.err
    assert "whole-lines 0." in outcome.err or "whole-lines 1." in outcome.err
    result = keras_seq.Run.open(run).read_result()["result"]
    assert result["metric"] == "whole-lines"
    assert (run / "rates.txt").read_text().splitlines()
    options = ("--labeled", files["data.labeled"], "--import", PLUGIN)
    evaluated = keras_seq_command("evaluate", run, *options, "--metric", "whole-lines,accuracy")
    assert evaluated.code == 0, evaluated.err
    assert any(line.startswith("lines without a mistake = ") for line in evaluated.lines)


@pytest.mark.parametrize(("setting", "value"), [("model.attention", "hard"), ("model.crf", True)])
def test_model_with_a_loss_of_its_own_refuses_another(setting, value):
    keras_seq.register_loss("own")(cross_entropy)
    task = (
        {"task": "tag", "model.family": "tagger-rnn"}
        if "crf" in setting
        else {"model.family": "rnn"}
    )
    values = {**task, setting: value, "training.loss": "own"}
    with pytest.raises(
        keras_seq.SettingsError, match="training.loss: received 'own', expected none"
    ):
        keras_seq.load_settings(overrides=values)


@pytest.mark.weekly
@pytest.mark.slow
def test_monitor_of_a_plugin_may_change_when_a_training_resumes(tmp_path):
    keras_seq.register_metric("lengths")(lambda answers, references: float(len(answers)))
    values = TINY | MODELS["classify"] | corpus(tmp_path, "classify") | {"task": "classify"}
    for steps, monitor in ((20, "accuracy"), (40, "lengths"), (60, "loss")):
        changed = {"training.monitor": monitor, "training.max_steps": steps}
        settings = keras_seq.load_settings(overrides=values | changed)
        result = keras_seq.train(settings, tmp_path / "run", notice=lambda line: None)
        assert (result.steps, result.metric) == (steps, monitor)
    assert keras_seq.Run.open(tmp_path / "run").settings.plugins is None
