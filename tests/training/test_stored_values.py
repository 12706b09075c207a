"""Results and training states from elsewhere are used only if all their values are possible."""

import json

import pytest

from keras_seq.callbacks import Validation
from keras_seq.training import TrainingResult
from keras_seq.training.checkpointing import TrainingProgress
from keras_seq.training.result import load_result, store_result

LONG = int("9" * 400)
NAN, INFINITY = float("nan"), float("inf")
RESULT = {
    "steps": 12,
    "minutes": 0.5,
    "metric": "bleu",
    "best": 3.5,
    "best_step": 8,
    "signature": "nrefs:1",
    "reason": "",
}
VALIDATION = {
    "monitor": "bleu",
    "best": 3.5,
    "best_step": 8,
    "best_tie": None,
    "best_loss": 1.5,
    "first": 0.0,
    "moved": True,
    "without_better": 1,
    "validated": 12,
}
PROGRESS = {
    "step": 12,
    "minutes": 0.5,
    "validation": VALIDATION,
    "signature": "nrefs:1",
    "backend": "tensorflow",
    "log_sizes": {"metrics.jsonl": 10},
}


def test_stored_result_is_loaded(run):
    result = TrainingResult(path=str(run.path), **RESULT)
    store_result(run, result, 3)
    assert load_result(run) == (result, 3)
    # The first runs have no reason.
    stored = json.loads((run.path / "result.json").read_text())
    del stored["result"]["reason"]
    (run.path / "result.json").write_text(json.dumps(stored))
    assert load_result(run) == (result, 3)


@pytest.mark.parametrize("wait", ["x", None, [1], -1, 1.5, NAN, INFINITY, True])
def test_result_with_an_impossible_patience_is_no_result(run, wait):
    run.write_result({"result": RESULT, "without_better": wait})
    assert load_result(run) == (None, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("steps", value) for value in ("x", None, -1, 1.5, NAN, True, [])),
        *(("best_step", value) for value in ("x", None, -1, INFINITY, {})),
        *(("minutes", value) for value in ("x", None, NAN, INFINITY, -1.0)),
        *(("best", value) for value in ("x", None, NAN, [1])),
        *(("metric", value) for value in ("unheard-of", 1, ["bleu"], {}, None, "")),
        *(("signature", value) for value in (1, None, [])),
        ("reason", 5),
        ("unheard-of", 1),
    ],
)
def test_result_with_an_impossible_value_is_no_result(run, name, value):
    run.write_result({"result": RESULT | {name: value}, "without_better": 0})
    assert load_result(run) == (None, 0)


@pytest.mark.parametrize("result", [None, [], "x", 1, {}])
def test_result_that_is_no_object_is_no_result(run, result):
    run.write_result({"result": result, "without_better": 0})
    assert load_result(run) == (None, 0)


def test_progress_is_restored():
    assert TrainingProgress.from_json(PROGRESS).validation == VALIDATION
    # Before the first validation, and of the first version of the format.
    for state in ({}, {"best": 3.5, "best_step": 8, "without_better": 1, "validated": 12}):
        assert TrainingProgress.from_json(PROGRESS | {"validation": state}).validation == state


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("step", value) for value in ("x", -1, True, LONG, None)),
        *(("minutes", value) for value in ("x", -1.0, NAN, INFINITY, LONG)),
        *(("signature", value) for value in (1, None, "\ud800")),
        *(("log_sizes", {"metrics.jsonl": value}) for value in ("x", -1, 1.5, True)),
        *(("validation", value) for value in (None, [], "x")),
    ],
)
def test_progress_with_an_impossible_value_is_refused(name, value):
    with pytest.raises(ValueError, match="^not the state of a training: ") as error:
        TrainingProgress.from_json(PROGRESS | {name: value})
    assert name in str(error.value) and len(str(error.value)) < 200


STATES = [
    *(("without_better", value) for value in ("x", None, -1, 1.5, NAN, True, [])),
    *(("best_step", value) for value in ("x", -1, 1.5, INFINITY, True)),
    *(("validated", value) for value in ("x", -1, [])),
    *(("best", value) for value in ("x", NAN, [1], True, LONG, {})),
    *(("best_tie", value) for value in ("x", NAN, [1])),
    *(("best_loss", value) for value in ("x", NAN, [1], LONG)),
    *(("first", value) for value in ("x", NAN, [1])),
    *(("moved", value) for value in ("x", None, 1)),
    *(("monitor", value) for value in (1, None, ["bleu"])),
]


@pytest.mark.parametrize(("name", "value"), STATES)
def test_state_of_the_validation_with_an_impossible_value_is_refused(name, value):
    state = VALIDATION | {name: value}
    with pytest.raises(ValueError, match=f"^not the state of a training: validation: {name}: "):
        TrainingProgress.from_json(PROGRESS | {"validation": state})
    callback = Validation(lambda step: {"bleu": 1.0}, every=2, monitor="bleu")
    with pytest.raises(ValueError, match=f"^{name}: received .*, expected "):
        callback.restore(state)
    # Nothing was restored.
    assert (callback.best, callback.wait) == (None, 0)


def test_state_of_the_validation_is_restored():
    callback = Validation(lambda step: {"bleu": 1.0}, every=2, monitor="bleu")
    callback.restore(VALIDATION)
    assert callback.state == VALIDATION
