"""A resumed training is bit-identical to an uninterrupted one, wherever the training stopped.

Here limits end the earlier part of a training; tests/faults kills real processes.
"""

import json
import os
import shutil

import numpy as np
import pytest
from run_helpers import forge
from training.toy import (
    assert_equal_tensors,
    killed_after,
    quiet_train,
    tensors_of,
    toy_settings,
    write_pairs,
)

import keras_seq
from keras_seq.callbacks import ExperimentLogger
from keras_seq.preparation import open_or_prepare
from keras_seq.run import Run

STEPS = 13


def settings_of(folder, max_steps, **overrides):
    settings = {
        "model__dropout": 0.3,
        "training__max_steps": max_steps,
        "training__ema": 0.5,
        "training__schedule": "inverse_sqrt",
        "training__warmup_steps": 5,
        "training__validate_every": 3,
        "training__checkpoint_every": 2,
        "training__patience": 0,
        "training__sample_count": 1,
    }
    return toy_settings(folder, **(settings | overrides))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("resume")


@pytest.fixture(scope="module")
def straight(folder):
    """Trains thirteen updates without interruption and returns the number of batches per epoch."""
    result, said = quiet_train(settings_of(folder, STEPS), folder / "straight")
    assert result.steps == STEPS
    return int(said.split(" batches an epoch")[0].split()[-1])


class Log(ExperimentLogger):
    def __init__(self):
        super().__init__()
        self.lines = []

    def start(self):
        self.lines.append("start")

    def write(self, values):
        assert any(name.startswith("validation/") for name in values)
        self.lines.append(f"validation {self.step}")

    def finish(self):
        self.lines.append("finish")


def last_checkpoint(run):
    """Returns all arrays of the newest checkpoint, and its state without times and sizes."""
    path = run / "checkpoints" / (run / "checkpoints" / "latest").read_text().strip()
    arrays = {
        f"{part}/{name}": array
        for part in ("weights", "training")
        for name, array in tensors_of(run, part=part).items()
    }
    state = json.loads((path / "state.json").read_text())
    return arrays, {key: state[key] for key in ("step", "validation", "signature", "backend")}


def validations(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [
        {key: value for key, value in line.items() if key != "minutes"}
        for line in lines
        if line["kind"] == "validation"
    ]


def assert_same_run(run, expected):
    arrays, state = last_checkpoint(run)
    expected_arrays, expected_state = last_checkpoint(expected)
    assert state == expected_state
    assert_equal_tensors(arrays, expected_arrays)
    assert validations(run) == validations(expected)
    assert (run / "samples.txt").read_text() == (expected / "samples.txt").read_text()
    best = [(path / "checkpoints" / "best").read_text() for path in (run, expected)]
    assert best[0] == best[1]
    results = [json.loads((path / "result.json").read_text()) for path in (run, expected)]
    for result in results:
        del result["result"]["minutes"]
    assert results[0] == results[1]


@pytest.mark.slow
def test_run_stopped_around_the_end_of_an_epoch_resumes_to_the_same_state(folder, straight):
    run = folder / "pieces"
    stops = (straight, straight + 1)
    for before, stop in zip((0, *stops), stops, strict=False):
        result, said = quiet_train(settings_of(folder, stop), run)
        assert result.steps == stop
        assert ("resuming after step" in said) == bool(before)
    result, said = quiet_train(settings_of(folder, STEPS), run, resume="require")
    assert f"resuming after step {straight + 1}" in said
    assert f"setting changed: training.max_steps {straight + 1} -> {STEPS}" in said
    assert_same_run(run, folder / "straight")


def test_compared_checkpoint_contains_all_resumable_state(folder, straight):
    """The comparisons of the other tests are only valid if the checkpoint has this state."""
    arrays, state = last_checkpoint(folder / "straight")
    assert sum(name.startswith("training/seed/") for name in arrays) >= 2
    weights = [name for name in arrays if name.startswith("training/weight/")]
    for slot in ("momentum", "velocity", "average"):
        assert sum(name.endswith(slot) for name in arrays) == len(weights), slot
    # The learning rate is a function of the iteration.
    (iteration,) = (array for name, array in arrays.items() if name.endswith("/iteration"))
    assert int(iteration) == STEPS
    assert state["validation"]["best_step"] > 0
    assert len(validations(folder / "straight")) == 5


def test_completed_run_is_not_trained_again(folder, straight):
    files = [path for path in (folder / "straight").rglob("*") if path.is_file()]
    before = [path.stat().st_mtime_ns for path in files]
    result, said = quiet_train(settings_of(folder, STEPS), folder / "straight")
    assert "trained already, 13 updates; resume with a higher limit" in said
    assert "validation at" not in said
    stored = json.loads((folder / "straight" / "result.json").read_text())["result"]
    assert stored == {
        key: getattr(result, key)
        for key in ("steps", "minutes", "metric", "best", "best_step", "signature", "reason")
    }
    assert [path.stat().st_mtime_ns for path in files] == before


@pytest.fixture
def stopped(folder, straight, tmp_path):
    """A copy of a run as it would be after a kill that follows the checkpoint of step 4.

    Its logs also have the entries of later steps and half a line.
    """
    run = killed_after(4, folder / "straight", tmp_path / "run")
    with open(run / "metrics.jsonl", "a") as stream:
        stream.write('{"kind": "valid')
    return run


@pytest.mark.jax
def test_resumed_logs_drop_unsaved_entries_and_have_no_gap(folder, stopped):
    quiet_train(settings_of(folder, STEPS), stopped)
    assert_same_run(stopped, folder / "straight")


@pytest.mark.slow
def test_resume_uses_an_earlier_checkpoint_when_the_last_is_damaged(folder, stopped):
    os.truncate(stopped / "checkpoints" / "step-00000004" / "training.safetensors", 1000)
    _, said = quiet_train(settings_of(folder, STEPS), stopped)
    assert "step-00000004: damaged: training.safetensors has 1000 bytes, the manifest" in said
    assert "step-00000003: read instead" in said
    assert "resuming after step 3\n" in said
    assert_same_run(stopped, folder / "straight")


@pytest.mark.weekly
@pytest.mark.slow
def test_run_without_a_checkpoint_starts_over(folder, stopped):
    shutil.rmtree(stopped / "checkpoints")
    with pytest.raises(keras_seq.InputError, match="no checkpoint to resume from"):
        quiet_train(settings_of(folder, STEPS), stopped, resume="require")
    quiet_train(settings_of(folder, STEPS), stopped)
    assert_same_run(stopped, folder / "straight")


@pytest.mark.slow
@pytest.mark.weekly
def test_patience_stops_at_the_same_update_after_a_resume(folder, tmp_path):
    """Weights hardly change, so the first of the validations at steps 3, 6 and 9 is the best."""
    still = {"training__learning_rate": 1e-9, "training__patience": 2}
    result, said = quiet_train(settings_of(folder, 99, **still), tmp_path / "straight")
    assert (result.steps, result.best_step) == (9, 3)
    assert "stopped early: no improvement in 2 validations (training.patience)" in said
    # An extra validation at the step limit does not count toward the patience.
    result, _ = quiet_train(settings_of(folder, 8, **still), tmp_path / "pieces")
    assert [line["step"] for line in validations(tmp_path / "pieces")] == [3, 6, 8]
    result, said = quiet_train(settings_of(folder, 99, **still), tmp_path / "pieces")
    assert "resuming after step 8\n" in said
    assert_same_run(tmp_path / "pieces", tmp_path / "straight")
    # As after a kill between the last update and the end of the last validation.
    (tmp_path / "pieces" / "result.json").unlink()
    _, said = quiet_train(settings_of(folder, 99, **still), tmp_path / "pieces")
    assert "resuming after step 9\n" in said and said.count("validation at step") == 1
    assert_same_run(tmp_path / "pieces", tmp_path / "straight")
    again, said = quiet_train(settings_of(folder, 99, **still), tmp_path / "pieces")
    assert "trained already, 9 updates; resume with a larger training.patience" in said
    assert "validation at" not in said
    assert (again.steps, again.best_step) == (9, 3)


def test_resume_runs_the_missing_last_validation(folder, stopped):
    """All updates are trained and saved, but the score of the last validation is missing."""
    log = Log()
    result, said = quiet_train(settings_of(folder, 4), stopped, callbacks=[log])
    assert result.steps == 4
    assert "validation at step 4" in said
    assert [line["step"] for line in validations(stopped)] == [3, 4]
    assert log.lines == ["start", "validation 4", "finish"]
    # The last validation of a training is logged before the end of the log.
    log = Log()
    quiet_train(settings_of(folder, 5), stopped, callbacks=[log])
    assert log.lines == ["start", "validation 5", "finish"]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"training__batch_tokens": 200}, "training.batch_tokens 300 -> 200"),
        ({"training__learning_rate": 0.5}, "training.learning_rate 0.01 -> 0.5"),
        ({"seed": 2}, "seed 1 -> 2"),
        ({"tokenizer__size": 300}, "tokenizer.size"),
        ({"model__units": 32}, "model.units 16 -> 32"),
        ({"data__max_source_length": 9}, "data.max_source_length 200 -> 9"),
        ({"training__validation_beam_size": 4}, "training.validation_beam_size 1 -> 4"),
        (
            {"seed": 2, "training__ema": 0.9},
            "seed 1 -> 2; training.ema 0.5 -> 0.9: use the original settings",
        ),
    ],
)
def test_resume_with_changed_training_settings_raises_input_error(
    folder, stopped, overrides, words
):
    before = (stopped / "settings.toml").read_text()
    with pytest.raises(
        keras_seq.InputError, match="this run was started with different settings"
    ) as error:
        quiet_train(settings_of(folder, STEPS, **overrides), stopped)
    assert words in str(error.value)
    assert (stopped / "settings.toml").read_text() == before


@pytest.mark.slow
def test_resume_allows_changed_limits_and_intervals(folder, stopped):
    changes = {
        "training__max_minutes": 60.0,
        "training__patience": 50,
        "training__validate_every": 5,
        "training__checkpoint_every": 4,
        "training__keep_checkpoints": 1,
        "training__sample_count": 2,
        "search__beam_size": 3,
    }
    quiet_train(settings_of(folder, STEPS, **changes), stopped)
    arrays, _ = last_checkpoint(stopped)
    expected, _ = last_checkpoint(folder / "straight")
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    run = Run.open(stopped)
    assert run.settings.training.validate_every == 5
    assert run.settings.search.beam_size == 3
    assert [line["step"] for line in validations(stopped)] == [3, 5, 10, STEPS]
    # The newest checkpoint, and the best checkpoint before the last validation.
    assert len(run.checkpoints.steps) <= 2
    assert run.checkpoints.steps[-1] == STEPS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"validation": {"without_better": "x"}},
            r"without_better: received 'x', expected a count$",
        ),
        ({"step": 5}, "its state is of step 5$"),
    ],
)
def test_resume_from_a_forged_state_raises_input_error(folder, stopped, change, words):
    state = stopped / "checkpoints" / "step-00000004"
    content = json.loads((state / "state.json").read_text()) | change
    forge(state, "state.json", json.dumps(content).encode())
    with pytest.raises(keras_seq.InputError, match=f"checkpoint 4: .*{words}"):
        quiet_train(settings_of(folder, STEPS), stopped)


@pytest.mark.weekly
@pytest.mark.slow
def test_minutes_of_earlier_processes_count_toward_the_limit(folder, stopped):
    state = stopped / "checkpoints" / "step-00000004"
    content = json.loads((state / "state.json").read_text()) | {"minutes": 59.0}
    forge(state, "state.json", json.dumps(content).encode())
    limit = {"training__max_minutes": 90.0}
    result, _ = quiet_train(settings_of(folder, 5, **limit), stopped)
    assert result.steps == 5
    assert 59.0 < result.minutes < 69.0
    limit = {"training__max_minutes": 58.0}
    result, said = quiet_train(settings_of(folder, 99, **limit), stopped)
    assert "trained already, 5 updates" in said


def test_resume_with_different_text_raises_input_error(folder, stopped):
    """Rejects text of the same or another length, and other validation text; accepts a copy."""
    settings = settings_of(folder, STEPS)

    def with_data(**paths):
        data = settings.data.model_copy(update={key: str(path) for key, path in paths.items()})
        return settings.model_copy(update={"data": data})

    other = folder / "other.tsv"
    write_pairs(other, 200, seed=9)
    with pytest.raises(keras_seq.InputError, match=r"data.pairs .* other content"):
        quiet_train(with_data(pairs=other), stopped)
    write_pairs(other, 201, seed=9)
    with pytest.raises(keras_seq.InputError, match=r"data.pairs .*train.tsv of \d+ bytes -> .*"):
        quiet_train(with_data(pairs=other), stopped)
    with pytest.raises(keras_seq.InputError, match=r"data.valid_pairs .* -> .*other.tsv"):
        quiet_train(with_data(valid_pairs=other), stopped)
    shutil.copy(folder / "train.tsv", other)
    open_or_prepare(with_data(pairs=other), stopped).unlock()


@pytest.mark.parametrize(
    "name", ["data/train/shard-00000.target.ids", "tokenizer/joint.model", "data/valid.source"]
)
def test_resume_with_changed_or_missing_run_files_raises_input_error(folder, stopped, name):
    content = bytearray((stopped / name).read_bytes())
    content[-3] ^= 1
    (stopped / name).write_bytes(content)
    with pytest.raises(keras_seq.InputError, match=f"{name}: changed since the training began"):
        quiet_train(settings_of(folder, STEPS), stopped)
    (stopped / name).unlink()
    with pytest.raises(keras_seq.InputError, match=f"{name}: changed since the training began"):
        quiet_train(settings_of(folder, STEPS), stopped)


def test_resume_on_another_backend_raises_input_error(folder, stopped):
    path = stopped / "checkpoints" / "step-00000004"
    content = json.loads((path / "state.json").read_text()) | {"backend": "torch"}
    forge(path, "state.json", json.dumps(content).encode())
    with pytest.raises(keras_seq.InputError, match="was trained on torch.*KERAS_BACKEND=torch"):
        quiet_train(settings_of(folder, STEPS), stopped)


def test_a_checkpoint_of_a_newer_format_is_refused(folder, stopped):
    path = stopped / "checkpoints" / "step-00000004" / "MANIFEST.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(keras_seq.InputError, match="format 2 of a newer keras-seq"):
        quiet_train(settings_of(folder, STEPS), stopped)
