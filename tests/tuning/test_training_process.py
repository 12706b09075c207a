"""A training in a process of its own, and what its exit code tells."""

import pytest

from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.settings import load_settings
from keras_seq.tuning import Ending
from keras_seq.tuning.training_process import train_in_process
from keras_seq.tuning.training_runs import train_run


@pytest.mark.process
def test_failed_training_is_an_outcome_with_the_reason(tmp_path, dates_file):
    settings = load_settings(preset="demo", overrides={"data.pairs": str(dates_file)})
    run = prepare_run(settings, tmp_path / "run")
    run.unlock()
    (run.path / "settings.toml").write_text("training.ema = 5")
    outcome = train_run(run, train_in_process, lambda line: None)
    assert (outcome.state, outcome.updates, outcome.value) == ("failed", 0, None)
    assert outcome.reason.startswith(f"{run.path}/settings.toml: training.ema: received 5")


@pytest.mark.parametrize(
    ("code", "state"), [(3, "diverged"), (4, "out of memory"), (-9, "out of memory"), (2, "failed")]
)
def test_exit_codes_are_those_of_train(run, code, state):
    run.logs.append_metrics({"kind": "training", "step": 70, "minutes": 0.5, "loss": 9.0})
    outcome = train_run(Run.open(run.path), lambda path, notice: Ending(code, "why"), print)
    assert (outcome.state, outcome.reason) == (state, "why")
    # The log tells how far the training came.
    assert (outcome.updates, outcome.minutes, outcome.value) == (70, 0.5, None)


def test_training_without_a_finite_validation_has_diverged(run):
    run.logs.append_metrics(
        {"kind": "validation", "step": 9, "minutes": 0.5, "loss": None, "monitor": "loss"}
    )
    run.write_result({"result": {"minutes": 0.5, "steps": 9, "best_step": 0}})
    outcome = train_run(run, lambda path, notice: Ending(0), print)
    assert (outcome.state, outcome.updates, outcome.value) == ("diverged", 9, None)
