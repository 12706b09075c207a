"""Plugins are imported by file, module or entry point; what goes wrong is one clear line."""

import os
import subprocess
import sys

import pytest

from keras_seq.plugins import PluginError, added, import_plugin, plugin_of
from keras_seq.plugins.loading import VARIABLE
from keras_seq.run import Run
from keras_seq.settings import FAMILIES, MONITORS, PRESETS, SettingsError, load_settings
from keras_seq.text import InputError

FAMILY = """
from typing import Literal
import keras_seq
from keras_seq.settings import ModelSection, a_family, a_number

@keras_seq.register_family("tag", training={"learning_rate": 0.02})
class Mine(ModelSection):
    model_class = "mine:Model"
    family: Literal["mine"] = a_family("mine")
    width: int = a_number(4, 1, 9, "Width.")
"""
METRIC = """
import keras_seq

@keras_seq.register_metric("{name}")
def metric(answers, references):
    return 1.0
"""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_family_of_a_file_has_settings_a_preset_and_a_default(write):
    import_plugin(write("mine.py", FAMILY))
    settings = load_settings(preset="mine", overrides=["model.width=7"])
    assert (settings.task, settings.model.width) == ("tag", 7)
    assert settings.training.learning_rate == 0.02
    assert settings.plugins == ["mine.py"]
    assert "mine" in FAMILIES and "mine" in PRESETS
    with pytest.raises(SettingsError, match=r"model\.width: received 10, expected an integer, at"):
        load_settings(preset="mine", overrides=["model.width=10"])
    with pytest.raises(
        SettingsError, match="model.family: received 'mine', expected .* 'classify'"
    ):
        load_settings(overrides=["task=classify", "model.family=mine"])


def test_run_names_its_plugin_and_opens_only_with_it(write, tmp_path):
    import_plugin(write("mine.py", FAMILY))
    settings = load_settings(preset="mine")
    assert Run.create(tmp_path / "run", settings).settings == settings
    assert Run.open(tmp_path / "run").settings == settings
    code = (
        "import sys; from keras_seq.run import Run; "
        "print(Run.open(sys.argv[1]).settings.model.width)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    without = {key: value for key, value in os.environ.items() if key != VARIABLE}
    alone = subprocess.run(command, capture_output=True, text=True, env=without, check=False)
    assert alone.stderr.splitlines()[-1].endswith(
        "the family 'mine' needs a plugin: add --import mine.py"
    )
    # Processes that this one starts know the plugin.
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    assert child.stdout == "4\n"


def test_plugin_of_an_installed_package_is_found_by_its_entry_point(write, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write("my_package/__init__.py", "")
    write("my_package/metrics.py", METRIC.format(name="one"))
    write(
        "my_package-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: my-package\nVersion: 1\n"
    )
    entries = "[keras_seq.plugins]\nshort-name = my_package.metrics\n"
    write("my_package-1.0.dist-info/entry_points.txt", entries)
    with pytest.raises(PluginError, match=r"plugin other: .* \(installed plugins: short-name\)"):
        import_plugin("other")
    assert "one" not in MONITORS
    import_plugin("short-name")
    assert plugin_of("metric", "one") == "short-name" and "one" in MONITORS


def test_module_is_a_plugin(write, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write("some_module.py", METRIC.format(name="two"))
    import_plugin("some_module")
    assert plugin_of("metric", "two") == "some_module"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "plugin bad.py: no such file: .*bad.py"),
        ("x = 1\nraise KeyError('lost')\n", "plugin bad.py: line 2: KeyError: 'lost'"),
        ("x = (\n", r"plugin bad.py: line 1: SyntaxError: '\(' was never closed"),
        ("import no_such_package_at_all", "plugin bad.py: line 1: ModuleNotFoundError: No module"),
        (
            METRIC.format(name="chrf"),
            "plugin bad.py: the metric 'chrf' exists already, in keras_seq",
        ),
    ],
)
def test_plugin_that_cannot_be_imported_says_why(tmp_path, write, text, message):
    path = write("bad.py", text) if text else str(tmp_path / "bad.py")
    with pytest.raises(PluginError, match=message):
        import_plugin(path)
    assert "bad" not in sys.modules
    # A corrected file can be imported.
    import_plugin(write("bad.py", METRIC.format(name="better")))
    assert "better" in added("metric")


def test_two_plugins_of_one_name_are_refused(write):
    import_plugin(write("a/mine.py", METRIC.format(name="one")))
    import_plugin(write("a/mine.py", METRIC.format(name="one")))
    with pytest.raises(PluginError, match=r"plugin mine.py: two files have this name"):
        import_plugin(write("b/mine.py", METRIC.format(name="other")))
    with pytest.raises(PluginError, match=r"plugin json.py: a module has the name 'json' already"):
        import_plugin(write("json.py", ""))
    with pytest.raises(
        PluginError, match=r"the metric 'one' exists already, in the plugin mine.py"
    ):
        import_plugin(write("yours.py", METRIC.format(name="one")))


def test_names_of_missing_plugins_are_explained():
    with pytest.raises(
        SettingsError, match="training.loss: received 'focal', expected a loss of a"
    ):
        load_settings(overrides=["training.loss=focal"])
    with pytest.raises(
        SettingsError, match="training.callbacks: received 'rates', expected a call"
    ):
        load_settings(overrides=['training.callbacks=["rates"]'])
    with pytest.raises(
        SettingsError, match=r"training\.monitor: received 'nothing', expected 'auto"
    ):
        load_settings(overrides=["training.monitor=nothing"])
    with pytest.raises(SettingsError, match="the loss 'focal' needs a plugin: add --import"):
        load_settings(base={"plugins": ["lost.py"], "training": {"loss": "focal"}})


def test_command_line_reports_a_broken_plugin(write, keras_seq_command, tmp_path):
    pairs = write("pairs.tsv", "a\tb\n" * 30)
    plugin = write("bad.py", "1 / 0\n")
    outcome = keras_seq_command("train", tmp_path / "run", "--pairs", pairs, "--import", plugin)
    assert outcome.code == 2
    assert outcome.error == "plugin bad.py: line 1: ZeroDivisionError: division by zero"


def test_a_plugin_error_is_an_input_error():
    assert issubclass(PluginError, InputError)


def test_a_stranger_cannot_print_or_import_by_the_list_of_plugins():
    base = {"training": {"loss": "focal"}}
    for plugins in ([["a"]], ["a\x1b[31mb"], ["a b"], "lost.py", 3, ["x" * 101]):
        with pytest.raises(SettingsError, match="plugins: received .*, expected names of plugins"):
            load_settings(base={"plugins": plugins, **base})
    with pytest.raises(
        SettingsError, match="needs a plugin: add its definition, which was in a no"
    ):
        load_settings(base={"plugins": ["__main__"], **base})


def test_any_plugin_with_the_name_will_do(write, tmp_path):
    import_plugin(write("mine.py", FAMILY))
    values = {**load_settings(preset="mine").to_dict(), "plugins": ["another.py"]}
    assert load_settings(base=values).to_dict()["plugins"] == ["mine.py"]


def test_plugins_of_the_environment_stay_listed(write, monkeypatch):
    first = write("first.py", METRIC.format(name="one"))
    monkeypatch.setenv(VARIABLE, first)
    import_plugin(write("second.py", METRIC.format(name="two")))
    assert os.environ[VARIABLE].split(os.pathsep)[0] == first
    assert "one" not in added("metric")
    load_settings()
    assert {"one", "two"} <= set(added("metric"))


def test_script_that_exits_is_no_plugin(write):
    path = write("script.py", "import sys\nsys.exit(0)\n")
    with pytest.raises(PluginError, match="plugin script.py: line 2: SystemExit: 0"):
        import_plugin(path)


def test_package_that_lacks_a_dependency_is_not_called_missing(write, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write("incomplete/__init__.py", "import no_such_package_at_all")
    write("incomplete/models.py", "")
    with pytest.raises(PluginError, match="plugin incomplete.models: ModuleNotFoundError: No mod"):
        import_plugin("incomplete.models")


@pytest.mark.process
def test_plugin_may_import_what_is_hidden_from_keras(write, keras_seq_process, tmp_path):
    plugin = write("tables.py", "import scipy, keras\n")
    outcome = keras_seq_process(
        "train", tmp_path / "run", "--pairs", "none.tsv", "--import", plugin
    )
    assert "none.tsv" in outcome.error
