"""Event files, read by TensorBoard itself."""

import time

import pytest

from keras_seq.training.event_log import EventLog


@pytest.fixture(scope="module", autouse=True)
def no_pictures():
    """The logs here are written."""


def read(directory):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(directory))
    events.Reload()
    return {
        tag: [(event.step, pytest.approx(event.value)) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_event_log_scalars_are_read_back_by_tensorboard(tmp_path):
    log = EventLog(tmp_path / "events")
    log.write(10, {"training/loss": 2.5, "training/rate": 0.001})
    log.write(20, {"training/loss": 2.25})
    log.close()
    assert read(tmp_path / "events") == {
        "training/loss": [(10, 2.5), (20, 2.25)],
        "training/rate": [(10, 0.001)],
    }


def test_event_log_scalars_are_readable_before_the_log_is_closed(tmp_path):
    log = EventLog(tmp_path)
    log.write(1, {"loss": 3.0})
    assert read(tmp_path) == {"loss": [(1, 3.0)]}
    log.close()


def test_event_log_creates_no_files_before_the_first_value(tmp_path):
    log = EventLog(tmp_path / "events")
    log.close()
    assert list(tmp_path.iterdir()) == []


def test_event_log_writes_nothing_without_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    log = EventLog(tmp_path)
    log.write(1, {"loss": 1.0})
    log.close()
    assert list(tmp_path.iterdir()) == []


def test_resumed_event_log_discards_values_after_its_initial_step(tmp_path):
    """The killed process logged step 30; the next process resumes after step 20."""
    first = EventLog(tmp_path)
    for step in (10, 20, 30):
        first.write(step, {"loss": float(step)}, group="training/")
    time.sleep(1.1)  # The names of event files contain the time in seconds.
    second = EventLog(tmp_path, initial_step=20)
    second.write(25, {"loss": 1.0}, group="training/")
    second.close()
    assert read(tmp_path) == {"training/loss": [(10, 10.0), (20, 20.0), (25, 1.0)]}


def test_closed_or_disabled_event_log_writes_nothing(tmp_path):
    log = EventLog(tmp_path / "a")
    log.write(1, {"loss": 3.0})
    log.close()
    log.write(2, {"loss": 2.0})
    assert read(tmp_path / "a") == {"loss": [(1, 3.0)]}
    log = EventLog(tmp_path / "b", enabled=False)
    log.write(1, {"loss": 3.0})
    log.write_samples(1, [("a", "b")])
    log.write_pictures(1, "attention", [b""])
    assert not (tmp_path / "b").exists()
