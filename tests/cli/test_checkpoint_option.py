"""`--which` of each command, compared with runs that have only the chosen checkpoint."""

import json
import random
import zipfile

import keras
import numpy as np
import pytest
from test_checkpoint_choice import assert_holds
from three_checkpoints import (
    BEST,
    LATEST,
    MEANT,
    MIDDLE,
    stored_weights,
    with_one_checkpoint,
    with_three_checkpoints,
)

import keras_seq

# Command lines to test; RUN and LINES stand for paths.
COMMANDS = {
    "translate": ["translate", "RUN", "--scores"],
    "likelihood": ["likelihood", "RUN", "-", "LINES"],
    "classify": ["classify", "RUN", "--format", "tsv"],
    "generate": ["generate", "RUN", "-", "--method", "beam", "--format", "jsonl"],
}
RUNS = {
    "classify": "classifier_run",
    "generate": "language_model_run",
}
LINES = b"a b c d e\nthe 3rd of may 1999 in london\nrain and sun, grace and ada\n"


def _text_run(folder, preset, **overrides):
    generator = random.Random(1)
    lines = [" ".join(generator.choices("abcdefgh", k=generator.randint(1, 9))) for _ in range(200)]
    (folder / "text").write_text("".join(f"{line}\n" for line in lines))
    settings = keras_seq.load_settings(
        preset=preset,
        overrides={
            "data.text": str(folder / "text"),
            "training.max_steps": 1,
            "training.sample_count": 0,
            "search.max_length": 40,
        }
        | overrides,
    )
    keras_seq.train(settings, folder / "run", notice=[].append)
    return folder / "run"


@pytest.fixture(scope="module")
def language_model_run(tmp_path_factory):
    small = {"num_layers": 1, "units": 16, "feedforward_units": 16, "num_heads": 2}
    named = {f"model.{key}": value for key, value in small.items()}
    return _text_run(tmp_path_factory.mktemp("lm"), "lm-transformer", **named)


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    return with_three_checkpoints(tiny_run, tmp_path_factory.mktemp("which") / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_command_reads_the_checkpoint_that_which_names(name, request, tmp_path, keras_seq_command):
    original = request.getfixturevalue(RUNS.get(name, "tiny_run"))
    given = with_three_checkpoints(original, tmp_path / "run")
    lines = tmp_path / "lines"
    lines.write_bytes(LINES)

    def output(run, *options):
        values = {"RUN": run, "LINES": lines}
        outcome = keras_seq_command(
            *(values.get(part, part) for part in COMMANDS[name]), *options, stdin=LINES
        )
        assert outcome.code == 0, outcome.err
        return outcome.lines

    alone = with_one_checkpoint(given, MIDDLE, tmp_path / "alone" / "run")
    assert output(given) != output(given, "--which", MIDDLE) == output(alone)


@pytest.mark.parametrize("which", MEANT)
def test_keras_file_holds_the_checkpoint_and_names_it(run, which, tmp_path, keras_seq_command):
    file = tmp_path / "model.keras"
    outcome = keras_seq_command("export", run, file, "--format", "keras", "--which", which)
    assert outcome.code == 0, outcome.err
    assert_holds(keras.saving.load_model(file), run, MEANT[which])
    with zipfile.ZipFile(file) as archive:
        record = json.loads(archive.read("checkpoint.json"))
    assert record == {"runs": [{"name": "run", "step": MEANT[which]}]}


@pytest.mark.weekly
@pytest.mark.slow
def test_saved_model_of_an_ensemble_names_the_checkpoints(run, tmp_path, keras_seq_command):
    outcome = keras_seq_command(
        "export", run, tmp_path / "served", "--which", MIDDLE, "--ensemble", run, "--verify", 0
    )
    assert outcome.code == 0, outcome.err
    record = json.loads((tmp_path / "served" / "1" / "checkpoint.json").read_text())
    assert record == {"runs": [{"name": "run", "step": MIDDLE}] * 2}


def test_ctranslate2_model_names_the_checkpoint(run, tmp_path, keras_seq_command):
    pytest.importorskip("ctranslate2")
    outcome = keras_seq_command(
        "export", run, tmp_path / "model", "--format", "ctranslate2", "--which", MIDDLE,
        "--verify", 0,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    record = json.loads((tmp_path / "model" / "checkpoint.json").read_text())
    assert record == {"runs": [{"name": "run", "step": MIDDLE}]}


def test_average_takes_checkpoints_by_name(run, tmp_path, keras_seq_command):
    outcome = keras_seq_command(
        "average", run, tmp_path / "mean", "--which", "best", "--which", MIDDLE
    )
    assert outcome.code == 0, outcome.err
    one, other = stored_weights(run, BEST), stored_weights(run, MIDDLE)
    for name, array in stored_weights(tmp_path / "mean", MIDDLE).items():
        expected = (one[name].astype("f8") + other[name]) / 2
        np.testing.assert_array_equal(array, expected.astype("f4"))


def test_files_of_a_job_are_translated_with_the_checkpoint(run, tmp_path, keras_seq_command):
    """A job rejects another checkpoint, so that it does not mix outputs of two checkpoints."""
    lines = tmp_path / "lines"
    lines.write_bytes(b"\n\n")
    job = ["translate", run, "--input", lines, "--output-dir", tmp_path / "out", "--workers", 1]
    assert keras_seq_command(*job, "--which", MIDDLE).code == 0
    assert keras_seq_command(*job, "--which", str(MIDDLE)).code == 0
    refused = keras_seq_command(*job, "--which", LATEST)
    assert refused.code == 2 and "weights.safetensors" in refused.error


@pytest.mark.usefixtures("without_tensorflow")
@pytest.mark.parametrize(
    "command",
    [
        ["translate", "RUN"],
        ["translate", "RUN", "--input", "LINES", "--output-dir", "OUT"],
        ["likelihood", "RUN", "LINES", "LINES"],
        ["diagnose", "RUN", "LINES", "LINES"],
        ["export", "RUN", "OUT"],
        ["export", "RUN", "OUT", "--format", "ctranslate2"],
        ["export", "RUN", "OUT.keras", "--format", "keras"],
    ],
    ids=" ".join,
)
def test_checkpoint_that_is_not_stored_is_one_line(run, command, tmp_path, keras_seq_command):
    lines = tmp_path / "lines"
    lines.write_bytes(LINES)
    values = {
        "RUN": run,
        "LINES": lines,
        "OUT": tmp_path / "out",
        "OUT.keras": tmp_path / "a.keras",
    }
    outcome = keras_seq_command(*(values.get(part, part) for part in command), "--which", "25")
    assert outcome.code == 2
    assert outcome.error == (
        f"{run}/checkpoints: received checkpoint '25', expected best, latest or a stored step: "
        "10, 20, 30"
    )
