"""The outcome of training a run up to a limit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from keras_seq.run import Run
from keras_seq.run.stored_values import is_count, is_number, is_text
from keras_seq.settings import METRICS, MONITORS

# "trained": the time was up. "finished": a limit of the run's own ended the training, such as early
# stopping. The others have no score.
State = Literal["trained", "finished", "diverged", "out of memory", "failed"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of training a run up to a limit.

    Attributes:
        state: How the training ended.
        minutes: Minutes of training in total, with validations.
        updates: Number of updates.
        metric: The monitor of the run, such as "bleu"; "" if there was no validation.
        value: The value of the monitor in the best validation; None without one.
        loss: The loss of the best validation; None without one.
        reason: Why the training failed; "" otherwise.
    """

    state: State
    minutes: float
    updates: int
    metric: str = ""
    value: float | None = None
    loss: float | None = None
    reason: str = ""

    @property
    def quality(self) -> tuple[float, float]:
        """The monitored value and the loss, converted so that lower is better.

        While a score shows no skill, such as a BLEU score of 0, the loss decides.
        """
        if self.value is None:
            return math.inf, math.inf
        monitor = MONITORS[self.metric]
        value = monitor.worst if monitor.is_worst(self.value) else self.value
        rank = float(self.value if value is None else value)
        loss = math.inf if self.loss is None else self.loss
        return rank if monitor.lower_is_better else -rank, loss

    @property
    def score(self) -> str:
        """The monitored value as text; "" without one."""
        if self.value is None:
            return ""
        return f"{self.value:.{METRICS[self.metric].digits}f}"

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        done = f"{self.updates:,} updates in {self.minutes:.2f} minutes"
        if self.value is None:
            return f"{done}, {self.state}: {self.reason}"
        return f"{done}, {self.metric} {self.score}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the attributes, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Any) -> Outcome:
        """Returns the outcome of `to_dict`. Raises ValueError for other values."""
        try:
            outcome = cls(**stored)
        except TypeError:
            raise ValueError("not an outcome") from None
        scores = (outcome.value, outcome.loss)
        if not (
            outcome.state in get_args(State)
            and is_number(outcome.minutes)
            and outcome.minutes >= 0
            and is_count(outcome.updates)
            and is_text(outcome.metric)
            and (outcome.metric in MONITORS if outcome.metric else outcome.value is None)
            and all(score is None or is_number(score) for score in scores)
            and is_text(outcome.reason)
        ):
            raise ValueError("not an outcome")
        return outcome


def read_outcome(run: Run, state: State, reason: str = "") -> Outcome:
    """Reads the outcome of a training from its run directory."""
    minutes, updates = 0.0, 0
    for kind in ("training", "validation"):
        for entry in run.logs.entries(kind):
            minutes = max(minutes, float(entry.get("minutes") or 0.0))
            updates = max(updates, int(entry.get("step") or 0))
    minutes = round(minutes, 4)
    if state in ("trained", "finished"):
        result = (run.read_result() or {}).get("result", {})
        minutes, updates = round(float(result["minutes"]), 4), int(result["steps"])
        for entry in run.logs.entries("validation"):
            monitor = entry.get("monitor", "")
            # The log of a run from elsewhere may name a metric that does not exist.
            value = entry.get(monitor) if monitor in MONITORS else None
            if entry["step"] == result["best_step"] and value is not None:
                return Outcome(state, minutes, updates, monitor, float(value), entry.get("loss"))
        return Outcome("diverged", minutes, updates, reason="no validation has a finite score")
    return Outcome(state, minutes, updates, reason=reason)
