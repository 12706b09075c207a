"""Logs and results of a run from elsewhere: values of the wrong kind are passed over or refused."""

import json

import pytest
from run_helpers import save

from keras_seq.analysis.history import History
from keras_seq.analysis.reports.course import curves, facts
from keras_seq.inference.classifier import temperature_of
from keras_seq.inference.tagger import outside_penalty_of
from keras_seq.inference.wake_words import threshold_of
from keras_seq.run.averaging import average_run
from keras_seq.text import InputError
from keras_seq.tuning.outcome import read_outcome

LONG = "9" * 400
GOOD = {"kind": "validation", "step": 2, "minutes": 0.5, "loss": 1.5, "bleu": 3.0}
GOOD["monitor"] = "bleu"


def log(run, *lines):
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (run.path / "metrics.jsonl").write_text("".join(f"{text}\n" for text in texts))


@pytest.mark.parametrize("step", ["Infinity", "NaN", "1e400", LONG, "-1", "2.5", "true", '"2"'])
def test_lines_without_a_possible_step_are_skipped(run, step):
    line = '{"kind": "validation", "step": %s, "monitor": "bleu", "bleu": 9.0, "threshold": 0.1}'
    log(run, line % step, GOOD)
    assert run.logs.validation_scores() == {2: 3.0}
    assert run.logs.validation_values("threshold") == {}
    assert [entry["step"] for entry in run.logs.entries("validation")] == [2]


@pytest.mark.parametrize("value", ["Infinity", "NaN", "1e400", LONG, '"x"', "[1]", "{}"])
def test_values_that_are_no_numbers_are_left_out(run, value):
    line = '{"kind": "validation", "step": 1, "monitor": "bleu", "bleu": %s, "temperature": %s}'
    log(run, line % (value, value), GOOD)
    assert run.logs.validation_scores() == {2: 3.0}
    assert run.logs.validation_values("temperature") == {}
    run.loaded_step = 1
    assert (temperature_of(run), threshold_of(run), outside_penalty_of(run)) == (1.0, 0.5, 0.0)


@pytest.mark.parametrize("value", [1e-320, -1e-310, 1e308, -1e300])
def test_fitted_numbers_that_would_overflow_are_left_out(run, value):
    log(run, GOOD | {"temperature": value, "outside_penalty": value, "threshold": 0.0})
    run.loaded_step = 2
    assert (temperature_of(run), threshold_of(run), outside_penalty_of(run)) == (1.0, 0.0, 0.0)


def test_best_checkpoints_of_a_hostile_log_are_counted(run, tmp_path):
    save(run, 2)
    tokenizer_of(run)
    log(run, '{"kind": "validation", "step": Infinity, "bleu": 1}', GOOD)
    with pytest.raises(InputError, match=r"has 1 validated checkpoints, expected at least 2"):
        average_run(run.path, tmp_path / "mean", 2, of="best")


@pytest.mark.parametrize(
    "change",
    [
        {"monitor": "unheard-of"},
        {"monitor": ["bleu"]},
        {"monitor": 1},
        {"minutes": "x"},
        {"minutes": None},
        {"loss": "x"},
        {"bleu": {"x": 1}},
        {"bleu": None},
        {"step": "2"},
        {"bleu": int(LONG)},
        {"minutes": int(LONG)},
    ],
)
@pytest.mark.parametrize("kind", ["training", "validation"])
def test_report_shows_what_is_usable_of_a_log(run, change, kind):
    save(run, 2)
    run.mark_best(2)
    log(run, GOOD | {"kind": kind} | change)
    history = History.of_run(run)
    rows = facts(run, 1_000, history)
    shown = json.dumps([rows, curves(history)], allow_nan=False)
    assert rows[0] == ["task", "translate"]
    assert "unheard-of" not in shown and '"x"' not in shown and LONG not in shown


@pytest.mark.parametrize("monitor", [None, "unheard-of", "signature", "kind"])
def test_outcome_of_a_trial_passes_over_impossible_monitors(run, monitor):
    line = {"kind": "validation", "step": 2, "monitor": monitor, "signature": "x", "unheard-of": 1}
    log(run, line, GOOD)
    run.write_result({"result": {"minutes": 0.5, "steps": 4, "best_step": 2}})
    outcome = read_outcome(run, "trained")
    assert (outcome.metric, outcome.value, outcome.quality) == ("bleu", 3.0, (-3.0, 1.5))


def test_log_without_minutes_has_no_time(run):
    log(run, {"kind": "training", "step": 5, "loss": 1.0})
    history = History.of_run(run)
    assert [name for name, _ in facts(run, 1_000, history)] == ["task", "model"]
    (loss,) = curves(history)
    assert loss["series"][0]["points"] == [(5, 1.0)]


@pytest.mark.parametrize("name", ["result.json", "evaluations.json"])
@pytest.mark.parametrize("value", [LONG, '"\\ud800"', '{"\\udfff": 1}'])
def test_results_that_could_not_be_written_again_are_refused(run, name, value):
    (run.path / name).write_text(f'{{"a": {{"b": [{value}]}}}}')
    read = run.read_result if name == "result.json" else run.read_evaluations
    with pytest.raises(InputError, match=f"{name}: (an integer|text)") as refused:
        read()
    assert "\n" not in str(refused.value)


def tokenizer_of(run):
    from keras_seq.text import Tokenizer

    tokenizer = Tokenizer.train(["a dog runs", "ein Hund rennt"] * 3, size=300)
    run.save_vocabularies(tokenizer, tokenizer)
