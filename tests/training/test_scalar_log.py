"""Event files, read back by TensorBoard's own reader."""

import pytest

from keras_seq.training.scalar_log import ScalarLog


def read(directory):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(directory))
    events.Reload()
    return {
        tag: [(event.step, pytest.approx(event.value)) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_numbers_are_read_back(tmp_path):
    log = ScalarLog(tmp_path / "events")
    log.write(10, {"training/loss": 2.5, "training/rate": 0.001})
    log.write(20, {"training/loss": 2.25})
    log.close()
    assert read(tmp_path / "events") == {
        "training/loss": [(10, 2.5), (20, 2.25)],
        "training/rate": [(10, 0.001)],
    }


def test_numbers_are_there_before_the_log_is_closed(tmp_path):
    log = ScalarLog(tmp_path)
    log.write(1, {"loss": 3.0})
    assert read(tmp_path) == {"loss": [(1, 3.0)]}
    log.close()


def test_nothing_is_made_before_the_first_number(tmp_path):
    log = ScalarLog(tmp_path / "events")
    log.close()
    assert list(tmp_path.iterdir()) == []


def test_without_tensorboard_it_does_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    log = ScalarLog(tmp_path)
    log.write(1, {"loss": 1.0})
    log.close()
    assert list(tmp_path.iterdir()) == []
