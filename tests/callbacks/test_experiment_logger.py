"""Trainings in a table, in MLflow and in Weights & Biases."""

import csv
import json
import os
import re
import sys

import keras
import numpy as np
import pytest

from keras_seq.callbacks import MLflowLogger, TableLogger, WandbLogger
from keras_seq.process.experiment_tools import EXPERIMENT_TOOLS, check_experiment_tools
from keras_seq.text import InputError


def fit(callback, epochs, model=None):
    """Fits a line in updates of one example; returns the model and the loss of each epoch."""
    if model is None:
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1), "mse")
    inputs = np.linspace(-1, 1, 10).reshape(-1, 1)
    history = model.fit(
        inputs,
        2 * inputs,
        batch_size=1,
        epochs=epochs,
        validation_data=(inputs, 2 * inputs),
        shuffle=False,
        verbose=0,
        callbacks=[callback],
    )
    return model, history.history


def table_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["step", "name", "value"]
    return [(int(step), name, float(value)) for step, name, value in rows]


def test_table_has_the_losses_that_fit_reports(tmp_path):
    _, history = fit(TableLogger(tmp_path / "log.csv", every=10), epochs=2)
    rows = table_of(tmp_path / "log.csv")
    losses = [value for _, name, value in rows if name == "training/loss"]
    assert losses == pytest.approx(history["loss"], rel=1e-5)
    validation = [(step, value) for step, name, value in rows if name == "validation/loss"]
    assert [step for step, _ in validation] == [10, 20]
    assert [value for _, value in validation] == pytest.approx(history["val_loss"], rel=1e-5)
    rates = [value for _, name, value in rows if name == "training/learning_rate"]
    assert rates == pytest.approx([0.1, 0.1])


def test_a_resumed_table_continues_and_loses_later_lines(tmp_path):
    path = tmp_path / "log.csv"
    model, _ = fit(TableLogger(path, every=5), epochs=1)
    with open(path, "a", encoding="utf-8") as file:
        file.write("15,training/loss,9.0\n")
    fit(TableLogger(path, every=5), epochs=1, model=model)
    steps = [step for step, name, _ in table_of(path) if name == "training/loss"]
    assert steps == [5, 10, 15, 20]
    assert (15, "training/loss", 9.0) not in table_of(path)


def resumed(path, step=10):
    """Opens a table as a training that resumes after an update does."""
    logger = TableLogger(path)
    logger.step = step
    logger.start()
    return logger


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x,loss,1\n", "line 2 begins with 'x', expected the number of an update"),
        (b"\n", "line 2 begins with ''"),
        (b'"5\n6",loss,1\n', "line 2 begins with '\"5"),
        (b"\xff\xfe,loss,1\n", "line 2 begins with"),
        (b"9" * 5000 + b",loss,1\n", "line 2 begins with '9{40}'"),
        (b"5," + b"x" * 200_000 + b",1\n", "line 2 has more than"),
    ],
)
def test_damaged_table_is_refused_with_its_name_and_stays(tmp_path, line, message):
    path = tmp_path / "log.csv"
    content = b"step,name,value\n" + line + b"5,loss,2.0\n"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: {message}") as refused:
        resumed(path)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400
    assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]


def test_sparse_table_is_not_read_whole(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"step,name,value\n")
    os.truncate(path, 20 << 30)
    with pytest.raises(InputError, match=r"log\.csv: line 2 has more than"):
        resumed(path)


def test_table_that_is_not_a_regular_file_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"log\.csv: a link, expected a regular file"):
        resumed(path)


def test_line_that_a_full_disk_cut_off_is_dropped(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"step,name,value\r\n5,loss,2.5\r\n10,loss,1.2\r\n10,los")
    resumed(path).write({"loss": 1.0})
    assert table_of(path) == [(5, "loss", 2.5), (10, "loss", 1.2), (10, "loss", 1.0)]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_full_disk_keeps_the_table_and_is_reported_with_its_name(tmp_path):
    import resource

    path = tmp_path / "log.csv"
    logger = resumed(path)
    logger.write({"loss": 2.5})
    content = path.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for fails in (lambda: resumed(path), lambda: logger.write({"loss": 1.0})):
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) - 2, before[1]))
        try:
            with pytest.raises(OSError) as failed:
                fails()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert failed.value.filename == str(path)
        assert path.read_bytes() == content


def test_validation_before_a_resumed_training_has_the_step_of_the_checkpoint(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"step,name,value\r\n5,loss,2.5\r\n8,los")
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.optimizer.iterations.assign(7)
    logger = TableLogger(path, every=1)
    data = np.ones((2, 1)), np.ones((2, 1))
    logger.on_test_end({"loss": 1.5})
    model.fit(*data, batch_size=2, verbose=0, callbacks=[logger])
    assert [row[:2] for row in table_of(path)] == [
        *((5, "loss"), (7, "validation/loss")),
        *((8, "training/learning_rate"), (8, "training/loss")),
    ]


def test_mlflow_has_parameters_and_curves_and_is_continued(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    parameters = {f"key.{number}": number for number in range(150)}

    def logger():
        return MLflowLogger(parameters, name="first", experiment="lines", key="it's", every=5)

    model, history = fit(logger(), epochs=1)
    fit(logger(), epochs=1, model=model)
    (run,) = mlflow.search_runs(experiment_names=["lines"], output_format="list")
    assert run.data.params == {name: str(value) for name, value in parameters.items()}
    assert run.info.run_name == "first" and run.info.status == "FINISHED"
    client = mlflow.MlflowClient()
    points = client.get_metric_history(run.info.run_id, "validation/loss")
    assert [point.step for point in points] == [10, 20]
    assert points[0].value == pytest.approx(history["val_loss"][0], rel=1e-5)


@pytest.mark.slow
@pytest.mark.weekly
def test_wandb_has_parameters_and_values(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    callback = WandbLogger({"units": 1}, project="lines", key="run", every=5)
    _, history = fit(callback, epochs=1)
    assert callback.run.config["units"] == 1
    (file,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    # Names and values are there as JSON.
    content = file.read_bytes()
    assert b"training/learning_rate" in content and b"validation/loss" in content
    assert json.dumps(history["val_loss"][0]).encode() in content


def test_tools_that_are_unknown_or_missing_are_named(monkeypatch):
    with pytest.raises(InputError, match="expected one of csv, mlflow, tensorboard, wandb"):
        check_experiment_tools(["excel"])
    check_experiment_tools(EXPERIMENT_TOOLS)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"install 'keras-seq\[mlflow\]'"):
        check_experiment_tools(["csv", "mlflow"])


@pytest.mark.slow
@pytest.mark.weekly
def test_command_logs_to_csv_and_mlflow(dates_file, tmp_path, monkeypatch, keras_seq_command):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    mlflow.set_experiment("commands")
    run = tmp_path / "run"
    small = {
        "model.units": 8,
        "model.feedforward_units": 8,
        "model.num_heads": 1,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "training.max_steps": 4,
        "training.validate_every": 2,
        "training.checkpoint_every": 2,
    }
    options = [word for key, value in small.items() for word in ("--set", f"{key}={value}")]
    arguments = ("train", run, "--pairs", dates_file, "--preset", "transformer-tiny", *options)
    outcome = keras_seq_command(*arguments, "--log", "csv,mlflow")
    assert outcome.code == 0, outcome.err
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    expected = {one["step"]: one["loss"] for one in entries if one["kind"] == "validation"}
    rows = table_of(run / "log.csv")
    found = {step: value for step, name, value in rows if name == "validation/loss"}
    assert found == pytest.approx(expected, rel=1e-4)
    (logged,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
    assert logged.data.params["model.units"] == "8"
    assert logged.data.metrics["validation/loss"] == pytest.approx(expected[4], rel=1e-4)
