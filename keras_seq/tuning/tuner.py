"""Searches settings by successive halving."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_seq.preparation import find_run
from keras_seq.settings import SettingsError
from keras_seq.storage import check_no_link, make_directory, write_file
from keras_seq.text import InputError, Notice
from keras_seq.tuning.best_settings import best_settings
from keras_seq.tuning.halving import minutes_each, planned_minutes, round_sizes
from keras_seq.tuning.outcome import Outcome
from keras_seq.tuning.search_space import (
    PRESET,
    Dimension,
    Value,
    base_values,
    default_space,
    parse_search,
)
from keras_seq.tuning.shared_text import SharedText
from keras_seq.tuning.stored_plan import StoredPlan, check_folder, described_settings
from keras_seq.tuning.suggestions import all_values, require_optuna, suggest
from keras_seq.tuning.tables import write_table
from keras_seq.tuning.training_process import Train, train_in_process
from keras_seq.tuning.training_runs import train_run, with_minutes
from keras_seq.tuning.trial import Trial, first_scores, survivors, table_of_trials
from keras_seq.tuning.trial_settings import TrialSettings

_PLAN = "tuning.json"
_OUTPUTS = ("text", "trials", "trials.tsv", "best.toml")
_MAX_TRIALS = 1000
# The budget to propose, compared with one in which the first validation is just reached.
_MARGIN = 1.2


@dataclass(frozen=True)
class TuningResult:
    """The result of a search.

    Attributes:
        trials: All trials, the best first.
        run: The run directory of the best trial.
        settings_file: The file with the settings of the best trial.
    """

    trials: Sequence[Trial]
    run: str
    settings_file: str

    @property
    def table(self) -> list[list[str]]:
        """The cells of the table of all trials, with a header."""
        return table_of_trials(self.trials)


class Tuning:
    """A search of settings by successive halving, with Optuna's suggestions.

    All trials train for an equal short time. The third of them with the best validation resumes for
    a longer time, and so on until one trial is left. Each round takes an
    equal share of the minutes.

    Args:
        folder: The folder of the search. If it has an interrupted search with the same arguments,
            `run` resumes it.
        minutes: Minutes of training of all trials together, including validation. The start of a
            process for each trial and round takes some more seconds.
        trials: Number of trials.
        search: What is searched, such as `"training.learning_rate=1e-4..1e-2"` or
            `"model.units=64,128"`; by default the learning rate, batch size, dropout and width,
            around the values of the settings.
        preset, file, overrides: The other settings, with the text; see `load_settings`.
        overwrite: Boolean, whether to delete an earlier search in the folder.
        notice: Function that receives messages.
        train: Function that trains the run in a directory; by default in a separate process.

    Raises:
        InputError: If a file is invalid, the folder cannot be used, or Optuna is not installed.
        SettingsError: If a searched setting or value is not possible.

    Reference:
        Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
        Optimization", AISTATS 2016; Li et al., "Hyperband: A Novel Bandit-Based Approach to
        Hyperparameter Optimization", JMLR 2018
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        minutes: float,
        trials: int = 9,
        search: Iterable[str] = (),
        preset: str | None = None,
        file: str | Path | None = None,
        overrides: Mapping[str, Any] | Iterable[str] | None = None,
        overwrite: bool = False,
        notice: Notice | None = None,
        train: Train = train_in_process,
    ) -> None:
        if not 0 < minutes < 10**6:
            raise SettingsError(f"--minutes: received {minutes:g}, expected a number above 0")
        if not 2 <= trials <= _MAX_TRIALS:
            raise SettingsError(f"--trials: received {trials}, expected 2 to {_MAX_TRIALS}")
        require_optuna()
        self.folder, self.minutes = Path(folder), minutes
        self._notice = notice or (lambda line: None)
        self._overwrite, self._train = overwrite, train
        check_folder(self.folder, _PLAN)
        dimensions = parse_search(search)
        earlier = None if overwrite else find_run(self.folder / "text" / "1")
        self._settings = TrialSettings(preset, file, overrides, self._notice, earlier)
        base = self._settings.base
        self.space: list[Dimension] = dimensions or self._settings.valid_part(default_space(base))
        self._settings.check(self.space)
        self._grid = all_values(self.space, limit=trials)
        if self._grid is not None:
            self._grid = [values for values in self._grid if self._settings.is_valid(values)]
            if len(self._grid) < 2:
                raise SettingsError("--search: fewer than two combinations of values are possible")
        self.sizes = round_sizes(trials if self._grid is None else len(self._grid))

    def plan(self) -> Iterator[str]:
        """Yields lines that describe the search."""
        each = planned_minutes(self.minutes, self.sizes)
        yield f"{self.sizes[0]} trials in {len(self.sizes)} rounds, {self.minutes:g} minutes"
        total = 0.0
        for number, (size, minutes) in enumerate(zip(self.sizes, each, strict=True), 1):
            total += minutes
            yield (
                f"round {number}: {size} trial{'s' * (size > 1)}, {minutes:.2f} minutes each, "
                f"{total:.2f} in total for each"
            )
        yield from (f"searched: {dimension}" for dimension in self.space)

    def run(self) -> TuningResult:
        """Trains the trials, and writes `trials.tsv` and `best.toml`.

        Raises InputError if the minutes are too few for a first validation, or all trials fail.
        """
        base = self._settings.base
        plan = {
            "minutes": self.minutes,
            "trials": self.sizes[0],
            "search": [str(dimension) for dimension in self.space],
            "preset": self._settings.preset,
            **described_settings(base),
        }
        stored = StoredPlan(self.folder, _PLAN, plan, _OUTPUTS, self._overwrite)
        try:
            return self._run(stored)
        finally:
            stored.close()

    def _run(self, stored: StoredPlan) -> TuningResult:
        names = [dimension.name for dimension in self.space]
        trials = stored.read_results(lambda number, each: Trial.from_dict(number, each, names))
        text = SharedText(self.folder / "text", self._notice)
        for index, size in enumerate(self.sizes):
            chosen = survivors(trials, index, size) if index else self._first(trials)
            minutes = self._minutes_each(trials, index)
            if not minutes:
                break
            for trial in chosen:
                if len(trial.outcomes) > index:
                    continue
                outcome = self._train_trial(trial, minutes, index, text)
                if index == 0 and len(trials) == 1:
                    self._check_first_validation(outcome, minutes, stored)
                trial.outcomes.append(outcome)
                stored.save([each.to_dict() for each in trials])
                write_table(self.folder / "trials.tsv", table_of_trials(trials))
        return self._finish(trials)

    def _minutes_each(self, trials: Sequence[Trial], index: int) -> float:
        """Returns the further minutes of each trial of a round that still trains."""
        size = self.sizes[index]
        if index:
            chosen = survivors(trials, index, size)
            size = sum(each.outcomes[index - 1].state != "finished" for each in chosen)
        used = sum(trial.minutes_before(index) for trial in trials)
        return minutes_each(self.minutes, used, len(self.sizes) - index, max(1, size))

    def _first(self, trials: list[Trial]) -> Iterator[Trial]:
        """Yields the trials of the first round, and appends new ones to `trials`."""
        for index in range(self.sizes[0]):
            if index == len(trials):
                values = self._next_values(trials)
                if values is None:
                    self._notice(f"only {len(trials)} trials: no more values fit together")
                    return
                trials.append(Trial(index + 1, values))
            yield trials[index]

    def _next_values(self, trials: Sequence[Trial]) -> dict[str, Value] | None:
        if self._grid is not None:
            return self._grid[len(trials)]
        base = base_values(self._settings.base, self.space)
        if not trials and base is not None and self._settings.is_valid(base):
            return base
        earlier = [
            (trial.values, score) for trial, score in zip(trials, first_scores(trials), strict=True)
        ]
        seed = self._settings.base.seed
        return suggest(self.space, earlier, seed, self._settings.is_valid)

    def _train_trial(self, trial: Trial, minutes: float, index: int, text: SharedText) -> Outcome:
        """Trains a trial for some further minutes."""
        where = f"round {index + 1} of {len(self.sizes)}, trial {trial.name}"
        if trial.last is not None and trial.last.state == "finished":
            self._notice(f"{where}: has reached its limit of updates or epochs")
            return trial.last
        values = ", ".join(f"{name} {value}" for name, value in trial.values.items())
        self._notice(f"{where}: {values}; {minutes:.2f} minutes")
        total = round(trial.minutes + minutes, 4)
        settings = with_minutes(self._settings.make(trial.values), max(total, 0.0001))
        directory = self.folder / "trials" / trial.name
        make_directory(directory.parent, parents=True)
        check_no_link(directory)
        try:
            run = text.open_run(settings, directory)
        except (InputError, SettingsError) as error:
            # A mistake in the text shows up in the first trial, a vocabulary too small in another.
            # A run that exists could be prepared, so something else is wrong.
            if trial.number == 1 or find_run(directory) is not None:
                raise
            outcome = Outcome("failed", 0.0, 0, reason=str(error))
        else:
            outcome = train_run(run, self._train, lambda line: self._notice(f"  {line}"))
        self._notice(f"{where}: {outcome.summary}")
        return outcome

    def _check_first_validation(self, outcome: Outcome, minutes: float, stored: StoredPlan) -> None:
        """Raises InputError if the first trial has not reached its first validation in its time."""
        every = self._settings.base.training.validate_every
        # Compilation and validation are not interrupted when the time is up.
        excess = outcome.minutes - minutes
        if outcome.state != "trained" or (outcome.updates >= every and excess <= minutes):
            return
        stored.discard()
        needed = max(excess, minutes * every / max(1, outcome.updates))
        budget = math.ceil(_MARGIN * needed * self.sizes[0] * len(self.sizes))
        raise InputError(
            f"--minutes {self.minutes:g}: too few: the first trial had {minutes:.2f} minutes and "
            f"took {outcome.minutes:.2f} for {outcome.updates:,} updates; the first validation is "
            f"at update {every:,} (training.validate_every): give --minutes {budget}, fewer "
            "--trials, or a smaller training.validate_every"
        )

    def _finish(self, trials: Sequence[Trial]) -> TuningResult:
        ranked = sorted(trials, key=lambda trial: trial.rank)
        best = ranked[0]
        if best.best is None or best.best.value is None:
            reason = best.last.reason or best.last.state if best.last is not None else ""
            raise InputError(f"{self.folder}: all {len(trials)} trials failed; the first: {reason}")
        run = self.folder / "trials" / best.name
        file = self.folder / "best.toml"
        write_file(file, best_settings(run, file, self._preset(best)).encode())
        return TuningResult(ranked, str(run), str(file))

    def _preset(self, trial: Trial) -> str | None:
        preset = trial.values.get(PRESET, self._settings.preset)
        return None if preset is None else str(preset)
