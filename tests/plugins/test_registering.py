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


def test_metrics_apply_to_tasks_that_compare_texts():
    keras_seq.register_metric("any")(lambda answers, references: 1.0)
    with_metric = [name for name, task in TASKS.items() if "any" in metrics_of(task)]
    assert with_metric == ["translate", "classify", "tag", "speech"]
