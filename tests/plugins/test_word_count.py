"""A task from outside the package trains, resumes, predicts and exports like a built-in task."""

import os
import random
from pathlib import Path

import pytest

import keras_seq
from keras_seq import litert, runtime
from keras_seq.inference.classifier import Classifier
from keras_seq.plugins import PluginError, import_plugin
from keras_seq.run.models import load_model
from keras_seq.serving import export_litert, export_onnx, export_saved_model
from keras_seq.settings import TASKS

pytestmark = pytest.mark.slow

PLUGIN = Path(__file__).parents[2] / "examples" / "plugins" / "word_count.py"


@pytest.fixture(scope="module", autouse=True)
def plugin(module_plugins):
    import_plugin(str(PLUGIN))


def labeled(count, seed):
    """Lines of one to four words, and their word counts."""
    generator = random.Random(seed)
    lines = [
        " ".join(generator.choices(["a", "dog", "runs", "far"], k=generator.randint(1, 4)))
        for _ in range(count)
    ]
    return "".join(f"{line}\t{len(line.split())}\n" for line in lines)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("word-count")
    (folder / "train.tsv").write_text(labeled(600, 1))
    (folder / "valid.tsv").write_text(labeled(60, 2))

    def settings(steps):
        return keras_seq.load_settings(
            overrides={
                "task": "word-count",
                "data.labeled": str(folder / "train.tsv"),
                "data.valid_labeled": str(folder / "valid.tsv"),
                "tokenizer.size": 280,
                "training.batch_tokens": 256,
                "training.learning_rate": 0.1,
                "training.warmup_steps": 10,
                "training.validate_every": 50,
                "training.checkpoint_every": 50,
                "training.max_steps": steps,
            }
        )

    first = keras_seq.train(settings(50), folder / "run")
    assert first.steps == 50
    # The second call resumes.
    result = keras_seq.train(settings(200), folder / "run")
    assert result.steps == 200
    return folder / "run", result


def test_example_has_at_most_85_lines():
    assert len(PLUGIN.read_text().splitlines()) <= 85


def test_custom_task_learns_and_answers(trained):
    run, result = trained
    assert result.metric == "accuracy" and result.best > 0.95
    opened = keras_seq.Run.open(run)
    classifier = Classifier.of_run(opened, load_model(opened))
    assert classifier(["a dog runs", "far"]) == ["3", "1"]


def test_custom_task_is_exported_and_verified(trained, tmp_path):
    run, _ = trained
    version = export_saved_model(keras_seq.Run.open(run), tmp_path / "served", verify=20)
    import tensorflow as tf

    answer = tf.saved_model.load(str(version)).signatures["serving_default"](
        text=tf.constant(["dog dog dog dog", "a"])
    )
    assert answer["label"].numpy().tolist() == [b"4", b"1"]


def test_custom_task_is_exported_without_tensorflow(trained, tmp_path, monkeypatch):
    pytest.importorskip("tf2onnx", reason="the extra onnx is not installed")
    pytest.importorskip("ai_edge_litert", reason="the extra litert is not installed")
    opened = keras_seq.Run.open(trained[0])
    exports = ((export_onnx, runtime.load, "onnx"), (export_litert, litert.load, "a.tflite"))
    for export, load, name in exports:
        model = load(export(opened, tmp_path / name, verify=20))
        assert model.task == "word-count"
        assert model(["dog dog dog dog", "a"]) == ["4", "1"]

    def refused(message):
        for export, _, name in exports:
            with pytest.raises(keras_seq.InputError, match=message):
                export(opened, tmp_path / f"new-{name}", verify=0)

    exporter = type(TASKS["word-count"].exporter(opened, opened.settings))
    graph = exporter.graph
    monkeypatch.setattr(exporter, "graph", lambda *some: graph(*some)._replace(answer=""))
    refused("'word-count' cannot be exported: the `answer` of its ModelGraph is '', expected one")
    monkeypatch.delattr(exporter, "graph")
    refused("'word-count' has no export to ONNX or LiteRT: its CountExporter lacks a method `gr")
    assert sorted(os.listdir(tmp_path)) == ["a.tflite", "onnx"]


def test_commands_train_classify_and_evaluate(trained, tmp_path, keras_seq_command):
    run, _ = trained
    option = f"--import={PLUGIN}"
    files = ("--labeled", run.parent / "train.tsv", "--valid-labeled", run.parent / "valid.tsv")
    settings = ("--set=tokenizer.size=280", "--set=training.max_steps=2")
    outcome = keras_seq_command(
        "train", tmp_path / "run", "--task", "word-count", option, *files, *settings
    )
    assert outcome.code == 0, outcome.err
    answers = keras_seq_command("classify", run, option, stdin=b"a dog runs\nfar\n")
    assert answers.lines == ["3", "1"], answers.err
    scores = keras_seq_command(
        "evaluate", run, option, "--labeled", run.parent / "valid.tsv", "-m", "accuracy"
    )
    assert scores.code == 0 and scores.lines[0].startswith("accuracy = "), scores.lines
    other = keras_seq_command("tag", run, option, stdin=b"a dog\n")
    assert other.error.endswith("task 'word-count', expected 'tag': use `keras-seq classify`")
    wrong = keras_seq_command("train", tmp_path / "other", "--task", "word-counts", *files)
    assert "task: received 'word-counts', expected 'translate'" in wrong.error


def test_two_tasks_cannot_have_one_name():
    class Other(keras_seq.tasks.Task):
        name = "word-count"

    with pytest.raises(PluginError, match="the task 'word-count' exists already, in the plugin"):
        keras_seq.register_task(Other())
