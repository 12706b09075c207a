"""`train --stop-after` saves, reports, exits with code 142, and resumes to identical weights."""

import signal

import pytest
from faults.training_process import HOLD_SAVES, Training, command, last_arrays, write_corpus

from keras_seq.run import Run

pytestmark = pytest.mark.process

ENDLESS = {"training__validate_every": 10**6, "training__checkpoint_every": 10**6}
# Shortens the time limit of an hour so that it expires at batch 8.
SHORT_HOUR = """
import keras_seq.training.loop as loop, signal, time
batches = loop.TrainingLoop._batches
def slow(self):
    for number, batch in enumerate(batches(self)):
        if number == 8:
            left, _ = signal.setitimer(signal.ITIMER_REAL, 0.01)
            print("left", round(left / 60), file=sys.stderr, flush=True)
        time.sleep(0.05)
        yield batch
loop.TrainingLoop._batches = slow
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("time")
    write_corpus(folder)
    return folder


@pytest.mark.weekly
def test_training_stopped_by_the_time_limit_resumes_to_identical_weights(folder):
    settings = {**ENDLESS, "model__dropout": 0.3}
    arguments = command(folder, "stopped", training__max_steps=10**6, **settings)
    code, said = Training([*arguments, "--stop-after", "60"], SHORT_HOUR).end()
    assert code == 142, said
    # The sixty minutes include the time since the command began.
    left = int(next(line for line in said.split("\n") if line.startswith("left ")).split()[1])
    assert 50 <= left <= 60
    saved = Run.open(folder / "stopped").checkpoints.latest_step
    assert f"the time is up; step {saved:,} is saved: the same command resumes from there" in said
    assert "Traceback" not in said
    settings["training__max_steps"] = saved + 3
    straight = Training(command(folder, "straight", **settings))
    code, said = Training(command(folder, "stopped", **settings)).end()
    assert code == 0 and f"resuming after step {saved:,}" in said, said
    code, said = straight.end()
    assert code == 0, said
    one, other = last_arrays(folder / "stopped"), last_arrays(folder / "straight")
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []


def test_sigterm_during_the_time_limit_save_does_not_break_it(folder):
    arguments = command(folder, "both", training__max_steps=10**6, **ENDLESS)
    held = HOLD_SAVES.format(signal.SIGTERM)
    training = Training([*arguments, "--stop-after", "60"], SHORT_HOUR + held)
    training.wait_for("begin save")
    code, said, _ = training.signalled(signal.SIGTERM)
    assert code == 143, said
    saved = Run.open(folder / "both").checkpoints.latest_step
    assert saved and f"stopped by a signal; step {saved:,} is saved" in said


# Gives the timer, which rings after at least a millisecond, the time to ring before the training.
LATE = """
import time
import keras_seq.training.loop as loop
def late(fit):
    def waited(self):
        time.sleep(1)
        return fit(self)
    return waited
loop.TrainingLoop.fit = late(loop.TrainingLoop.fit)
"""


def test_time_limit_before_the_first_update_exits_with_142(folder):
    arguments = command(folder, "early", training__max_steps=10**6, **ENDLESS)
    code, said = Training([*arguments, "--stop-after", "0.00001"], LATE).end()
    assert code == 142, said
    assert "the time is up; nothing was trained yet: the same command resumes" in said


@pytest.mark.parametrize("minutes", ["0", "-3", "nan"])
def test_invalid_stop_after_minutes_are_rejected(folder, minutes, keras_seq_command):
    outcome = keras_seq_command(*command(folder, "refused"), "--stop-after", minutes)
    assert outcome.code == 2
    assert "must be a number of minutes" in outcome.error
    assert not (folder / "refused").exists()
