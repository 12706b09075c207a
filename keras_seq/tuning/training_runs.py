"""Trains runs up to a limit, and reads how that ended."""

from __future__ import annotations

from keras_seq.operating_system import KILLED
from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.text import Notice
from keras_seq.tuning.outcome import Outcome, State, read_outcome
from keras_seq.tuning.training_process import Train

# Exit codes of `keras-seq train`. The kernel kills processes when memory runs out.
_STATES: dict[int, State] = {
    3: "diverged",
    4: "out of memory",
    KILLED: "out of memory",
}
# A training that ends before this share of its time has reached another limit.
_EARLY = 0.99


def train_run(run: Run, train: Train, notice: Notice) -> Outcome:
    """Trains a prepared run up to its limits, and returns the outcome.

    Args:
        run: The run. Its lock is free.
        train: Trains the run in a directory.
        notice: Function that receives messages.
    """
    ending = train(run.path, notice)
    if ending.code:
        return read_outcome(run, _STATES.get(ending.code, "failed"), ending.reason)
    outcome = read_outcome(run, "trained")
    minutes = run.settings.training.max_minutes
    if outcome.state == "trained" and (minutes is None or outcome.minutes < _EARLY * minutes):
        return read_outcome(run, "finished")
    return outcome


def with_minutes(settings: Settings, minutes: float) -> Settings:
    """Returns settings with a limit of minutes."""
    training = settings.training.model_copy(update={"max_minutes": minutes})
    return settings.model_copy(update={"training": training})
