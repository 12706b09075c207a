"""`keras-seq tune` and `keras-seq curve`, with real trainings in separate processes."""

import os
import signal
import subprocess
import sys

import pytest

from keras_seq.run import Run

TINY = {
    "tokenizer.kind": "unigram",
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.units": 16,
    "model.feedforward_units": 16,
    "model.num_heads": 2,
    "training.batch_tokens": 300,
    "training.schedule": "constant",
    "training.max_steps": 6,
    "training.validate_every": 3,
    "training.sample_count": 0,
    "training.monitor": "loss",
    "search.max_length": 8,
}


@pytest.fixture
def options(tmp_path):
    """Options of a toy task, to reverse letters, whose model trains for 6 updates."""
    for name, words in (("train.tsv", range(200)), ("valid.tsv", range(200, 212))):
        lines = (" ".join("abcdefgh"[int(d)] for d in f"{word:05o}") for word in words)
        text = "".join(f"{line}\t{line[::-1]}\n" for line in lines)
        (tmp_path / name).write_text(text)
    files = ["--pairs", tmp_path / "train.tsv", "--valid-pairs", tmp_path / "valid.tsv"]
    return [*files, "--preset", "transformer-tiny", *(f"--set={k}={v}" for k, v in TINY.items())]


@pytest.mark.process
@pytest.mark.weekly
def test_search_stopped_by_sigterm_resumes_and_finds_the_learning_rate_that_learns(
    tmp_path, options, keras_seq_command
):
    """With a learning rate of 1e-9, a model does not learn anything."""
    command = ["tune", tmp_path / "search", *options, "--minutes", 60]
    command += ["--search", "training.learning_rate=1e-9,1e-2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_seq", *map(str, command)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    # The second trial has begun, and the first is finished.
    for line in process.stderr:
        if line.startswith("round 1 of 2, trial 02"):
            break
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=100)
    assert process.returncode == 143
    first = (tmp_path / "search" / "trials.tsv").read_text().split("\n")[1]
    assert first.split("\t")[:2] == ["01", "1e-9"]

    outcome = keras_seq_command(*command)
    assert outcome.code == 0, outcome.err
    table = [line.split() for line in outcome.lines]
    assert table[1][:2] == ["02", "1e-2"] and table[1][-2:] == ["best,", "finished"]
    assert float(table[1][4]) < float(table[2][4])
    # The first trial was not repeated.
    assert "\t".join(table[2]) == first.replace("best, ", "")
    assert "round 1 of 2, trial 01" not in outcome.err
    assert Run.open(tmp_path / "search" / "trials" / "02").checkpoints.best_step is not None


def test_dry_run_prints_trials_rounds_and_minutes(tmp_path, options, keras_seq_command):
    outcome = keras_seq_command("tune", tmp_path / "new", *options, "--minutes", 27, "--dry-run")
    assert outcome.lines[:4] == [
        "9 trials in 3 rounds, 27 minutes",
        "round 1: 9 trials, 1.00 minutes each, 1.00 in total for each",
        "round 2: 3 trials, 3.00 minutes each, 4.00 in total for each",
        "round 3: 1 trial, 9.00 minutes each, 13.00 in total for each",
    ]
    assert outcome.lines[4] == "searched: training.learning_rate 0.00125..0.02 (log)"
    assert not (tmp_path / "new").exists()


def test_wrong_options_are_one_line(tmp_path, options, keras_seq_command, without_tensorflow):
    for wrong, message in (
        (["tune", "--minutes", 0], "--minutes: received 0, expected a number above 0"),
        (["tune", "--minutes", 1, "--search", "x"], "--search: received 'x', expected NAME="),
        (["curve", "--set=data.share=0.5"], "data.share: received 0.5, expected none"),
        (["curve", "--max-steps", 0], "training.max_steps: received 0, expected"),
    ):
        name, *arguments = wrong
        outcome = keras_seq_command(name, tmp_path / "new", *options, *arguments)
        assert outcome.code == 2 and message in outcome.error
        assert not (tmp_path / "new").exists()


def test_tuning_without_optuna_names_the_extra(tmp_path, options, keras_seq_command, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    outcome = keras_seq_command("tune", tmp_path / "new", *options, "--minutes", 1)
    assert outcome.code == 2 and "python -m pip install 'keras-seq[tune]'" in outcome.error
