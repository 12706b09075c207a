"""What `register_*` accepts; a definition that runs again replaces the earlier one."""

from typing import Literal

import pytest

import keras_seq
from keras_seq.plugins import PluginError, added
from keras_seq.settings import ModelSection, a_family, metrics_of
from keras_seq.settings.tasks import TASKS


def test_cell_of_a_notebook_may_run_again():
    def cell(width):
        @keras_seq.register_metric("width")
        def metric(answers, references):
            return width

        return metric

    cell(1.0)
    second = cell(2.0)
    assert added("metric")["width"].function is second

    def other(answers, references):
        return 3.0

    with pytest.raises(PluginError, match="the metric 'width' exists already, in the plugin"):
        keras_seq.register_metric("width")(other)


def test_family_needs_a_name_a_model_and_tasks():
    with pytest.raises(TypeError, match="expected names of tasks"):
        keras_seq.register_family()
    with pytest.raises(TypeError, match="expected names of tasks"):
        keras_seq.register_family(ModelSection)

    class WithoutName(ModelSection):
        model_class = "x:Y"

    with pytest.raises(PluginError, match="WithoutName: expected a ModelSection with the field"):
        keras_seq.register_family("translate")(WithoutName)

    class WithoutModel(ModelSection):
        family: Literal["bare"] = a_family("bare")

    with pytest.raises(PluginError, match="WithoutModel: expected the class attribute model_class"):
        keras_seq.register_family("translate")(WithoutModel)

    class Taken(ModelSection):
        model_class = "x:Y"
        family: Literal["rnn"] = a_family("rnn")

    with pytest.raises(PluginError, match="the family 'rnn' exists already, in keras_seq: choose"):
        keras_seq.register_family("translate")(Taken)


@pytest.mark.parametrize("name", ["", "a b", "x,y", "3d", "none", "auto", "step", "temperature", 7])
def test_metric_has_a_name_that_options_and_logs_can_use(name):
    with pytest.raises(
        PluginError, match="expected a name of letters|exists already, in keras_seq"
    ):
        keras_seq.register_metric(name)(lambda answers, references: 1.0)


def test_decorator_without_a_name_is_refused():
    with pytest.raises(TypeError, match="register_loss: expected a name, as in register_loss"):
        keras_seq.register_loss(lambda ids, logits: logits)


def test_family_cannot_have_the_name_of_a_preset():
    class Tiny(ModelSection):
        model_class = "x:Y"
        family: Literal["transformer-tiny"] = a_family("transformer-tiny")

    with pytest.raises(PluginError, match="the family 'transformer-tiny' exists already"):
        keras_seq.register_family("translate")(Tiny)


def test_task_without_a_family_is_refused():
    class Bare(keras_seq.tasks.Task):
        name = "bare"
        usage = "translate {}"

    keras_seq.register_task(Bare())
    with pytest.raises(keras_seq.SettingsError, match="task 'bare' has no family of models"):
        keras_seq.load_settings(overrides=["task=bare"])


def test_plugins_cannot_add_models_of_recordings():
    class Ears(ModelSection):
        model_class = "x:Y"
        family: Literal["ears"] = a_family("ears")

    keras_seq.register_family("speech")(Ears)
    with pytest.raises(keras_seq.SettingsError, match="plugins cannot add models of recordings"):
        keras_seq.load_settings(overrides=["task=speech", "model.family=ears"])


def test_values_of_a_family_win_over_those_of_the_corpus_size(tmp_path):
    class Slow(ModelSection):
        model_class = "x:Y"
        family: Literal["slow"] = a_family("slow")

    keras_seq.register_family("translate", training={"warmup_steps": 7})(Slow)
    (tmp_path / "pairs.tsv").write_text("a\tb\n" * 50)
    overrides = [f"data.pairs={tmp_path / 'pairs.tsv'}", "model.family=slow"]
    settings, _ = keras_seq.preparation.resolve_settings(overrides=overrides)
    assert settings.training.warmup_steps == 7
    assert settings.training.max_epochs is not None


def test_metrics_apply_to_tasks_that_compare_texts():
    keras_seq.register_metric("any")(lambda answers, references: 1.0)
    with_metric = [name for name, task in TASKS.items() if "any" in metrics_of(task)]
    assert with_metric == ["translate", "classify", "tag", "speech"]


def test_tasks_of_keras_seq_with_the_same_command_stay_apart(tmp_path):
    run = keras_seq.Run.create(tmp_path / "run", keras_seq.load_settings(preset="vae"))
    with pytest.raises(
        keras_seq.InputError, match="a run of task 'vae', expected 'language-model'"
    ):
        run.require_task("language-model")
