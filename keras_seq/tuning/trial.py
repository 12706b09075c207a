"""A trial of a search, and the table of all trials."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from keras_seq.run.stored_values import is_number, is_text
from keras_seq.tuning.outcome import Outcome
from keras_seq.tuning.search_space import Value
from keras_seq.tuning.tables import score_cells, score_columns


@dataclass
class Trial:
    """A trial: the settings that it tries, and its outcome after each of its rounds.

    Attributes:
        number: Number of the trial, from 1.
        values: The searched settings, by name.
        outcomes: One `Outcome` for each round that it took part in.
    """

    number: int
    values: dict[str, Value]
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the run directory."""
        return f"{self.number:02}"

    @property
    def last(self) -> Outcome | None:
        """The newest outcome; None before the first round."""
        return self.outcomes[-1] if self.outcomes else None

    @property
    def best(self) -> Outcome | None:
        """The newest outcome with a score, or else the newest; None before the first round."""
        scored = [outcome for outcome in self.outcomes if outcome.value is not None]
        return scored[-1] if scored else self.last

    @property
    def minutes(self) -> float:
        """Minutes of training."""
        return self.last.minutes if self.last is not None else 0.0

    @property
    def rank(self) -> tuple[float, ...]:
        """Sorts trials, the best first: by rounds with a score, then by the last score."""
        scored = sum(outcome.value is not None for outcome in self.outcomes)
        quality = self.best.quality if self.best is not None else (math.inf, math.inf)
        return -scored, *quality, self.number

    def minutes_before(self, index: int) -> float:
        """Returns the minutes of training before a round, counted from 0."""
        earlier = self.outcomes[:index]
        return earlier[-1].minutes if earlier else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Returns values and outcomes, for JSON."""
        outcomes = [outcome.to_dict() for outcome in self.outcomes]
        return {"values": self.values, "outcomes": outcomes}

    @classmethod
    def from_dict(cls, number: int, stored: Any, names: Collection[str]) -> Trial:
        """Returns the trial of `to_dict`. Raises ValueError for other values.

        `names` are the names of the searched settings.
        """
        if not isinstance(stored, dict) or stored.keys() != {"values", "outcomes"}:
            raise ValueError("not a trial")
        values, outcomes = stored["values"], stored["outcomes"]
        if not (
            isinstance(values, dict)
            and values.keys() == set(names)
            and all(is_text(value) or is_number(value) for value in values.values())
            and isinstance(outcomes, list)
            and outcomes
        ):
            raise ValueError("not a trial")
        return cls(number, values, [Outcome.from_dict(outcome) for outcome in outcomes])


def survivors(trials: Sequence[Trial], index: int, count: int) -> list[Trial]:
    """Returns the best trials of the round before round `index`, which take part in it."""
    scored = [
        trial
        for trial in trials
        if len(trial.outcomes) >= index and trial.outcomes[index - 1].value is not None
    ]
    return sorted(scored, key=lambda trial: (*trial.outcomes[index - 1].quality, trial.number))[
        :count
    ]


def first_scores(trials: Sequence[Trial]) -> list[float]:
    """Returns a score of each trial in the first round. Lower scores are better.

    If all trials have the same monitored value, such as a BLEU score of 0, it is the loss. A trial
    without a score has infinity.
    """
    qualities = [trial.outcomes[0].quality for trial in trials]
    values = {value for value, _ in qualities if math.isfinite(value)}
    return [quality[0] if len(values) > 1 else quality[1] for quality in qualities]


def table_of_trials(trials: Sequence[Trial]) -> list[list[str]]:
    """Returns the cells of a table of trials with a header, the best trial first."""
    names = list(trials[0].values) if trials else []
    metric = next((each.best.metric for each in trials if each.best and each.best.metric), "")
    rows = [["trial", *names, "minutes", "updates", *score_columns(metric), "round", "state"]]
    for place, trial in enumerate(sorted(trials, key=lambda trial: trial.rank)):
        outcome, last = trial.best, trial.last
        if outcome is None or last is None:
            continue
        is_best = place == 0 and outcome.value is not None
        rows.append(
            [
                trial.name,
                *(str(value) for value in trial.values.values()),
                f"{last.minutes:.2f}",
                f"{last.updates}",
                *score_cells(metric, outcome),
                str(len(trial.outcomes)),
                ("best, " if is_best else "") + last.state,
            ]
        )
    return rows
