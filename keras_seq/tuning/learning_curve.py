"""Measures how a score grows with the training text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from keras_seq.preparation import find_run, resolve_settings
from keras_seq.run import Run
from keras_seq.settings import METRICS, Settings, SettingsError
from keras_seq.text import InputError, Notice
from keras_seq.tuning.errors_of_metrics import from_error, name_of_error, to_error
from keras_seq.tuning.outcome import Outcome
from keras_seq.tuning.parts_of_text import (
    SHARES,
    num_pairs,
    prepare_parts,
    run_directory,
    unit_of,
)
from keras_seq.tuning.power_law import extrapolate
from keras_seq.tuning.stored_plan import StoredPlan, check_folder, described_settings
from keras_seq.tuning.tables import score_cells, score_columns, write_table
from keras_seq.tuning.training_process import Train, train_in_process
from keras_seq.tuning.training_runs import train_run

_PLAN = "curve.json"
_OUTPUTS = ("runs", "curve.tsv")
_MIN_PAIRS = 8


@dataclass
class CurvePoint:
    """One run of a learning curve.

    Attributes:
        share: Share of the training text.
        pairs: Number of training pairs; see `CurveResult.unit`.
        outcome: The outcome of the training; None before it.
    """

    share: Fraction
    pairs: int
    outcome: Outcome | None = None


@dataclass(frozen=True)
class CurveResult:
    """A learning curve, and what twice the text would bring.

    Attributes:
        points: The runs, the one with the least text first.
        unit: What is counted: "pairs", "lines", "recordings", or "pieces" of packed text.
        metric: The metric that is compared; "" if no run has a score.
        prediction: The predicted value with twice the text; None if the points do not determine it.
        low, high: Range of the prediction.
        message: One line about the prediction.
    """

    points: Sequence[CurvePoint]
    unit: str
    metric: str
    prediction: float | None
    low: float | None
    high: float | None
    message: str

    @property
    def table(self) -> list[list[str]]:
        """The cells of a table with a header."""
        scores = score_columns(self.metric)
        rows = [["share", self.unit, "minutes", "updates", *scores, "state"]]
        for point in self.points:
            if (outcome := point.outcome) is not None:
                done = [f"{outcome.minutes:.2f}", str(outcome.updates)]
                cells = [*done, *score_cells(self.metric, outcome), outcome.state]
                rows.append([str(point.share), str(point.pairs), *cells])
        if self.prediction is not None and self.low is not None and self.high is not None:
            value, low, high = (
                _shown(self.metric, each) for each in (self.prediction, self.low, self.high)
            )
            pairs = str(2 * self.points[-1].pairs)
            no_loss = [""] * (len(scores) - 1)
            predicted = f"predicted, {low} to {high}"
            rows.append(["2", pairs, "", "", value, *no_loss, predicted])
        return rows


def measure_learning_curve(
    folder: str | os.PathLike[str],
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    overrides: Mapping[str, Any] | Iterable[str] | None = None,
    overwrite: bool = False,
    notice: Notice | None = None,
    train: Train = train_in_process,
) -> CurveResult:
    """Trains on 1/8, 1/4, 1/2 and all of the training text, and predicts the score with twice it.

    The smaller parts are within the larger ones. All runs have the same settings, vocabulary and
    validation text, and the same limit of updates: `training.max_epochs` counts epochs of
    the whole text. `curve.tsv` in the folder has the table, and `runs` the runs.

    Args:
        folder: The folder. If it has an interrupted call with the same arguments, it is resumed.
        preset, file, overrides: The settings, with the text; see `load_settings`.
        overwrite: Boolean, whether to delete earlier runs in the folder.
        notice: Function that receives messages.
        train: Function that trains the run in a directory; by default in a separate process.

    Raises:
        InputError: If a file is invalid, the folder cannot be used, or the text is too short.
        SettingsError: If the settings are not possible, or have no limit.

    Reference:
        Hestness et al., "Deep Learning Scaling is Predictable, Empirically", 2017,
        https://arxiv.org/abs/1712.00409
    """
    path = Path(folder)
    notice = notice or (lambda line: None)
    check_folder(path, _PLAN)
    earlier = None if overwrite else find_run(run_directory(path, SHARES[-1]))
    settings, counts = resolve_settings(
        preset=preset, file=file, overrides=overrides, notice=notice, earlier=earlier
    )
    _check(settings)
    stored = StoredPlan(path, _PLAN, described_settings(settings), _OUTPUTS, overwrite)
    try:
        runs = prepare_parts(settings, path, counts, notice)
        return _measure(path, runs, stored, notice, train)
    finally:
        stored.close()


def _measure(
    path: Path, runs: Sequence[Run], stored: StoredPlan, notice: Notice, train: Train
) -> CurveResult:
    unit = unit_of(runs[0].settings)
    points = [CurvePoint(share, num_pairs(run)) for share, run in zip(SHARES, runs, strict=True)]
    if points[0].pairs < _MIN_PAIRS:
        stored.discard()
        raise InputError(
            f"{points[-1].pairs:,} training {unit} are too few for a learning curve: an eighth has "
            f"{points[0].pairs:,}, expected at least {_MIN_PAIRS}"
        )
    outcomes = stored.read_results(lambda number, each: Outcome.from_dict(each))
    for index, (point, run) in enumerate(zip(points, runs, strict=True)):
        where = f"{point.share} of the text, {point.pairs:,} {unit}"
        if index == len(outcomes):
            notice(where)
            outcome = train_run(run, train, lambda line: notice(f"  {line}"))
            outcomes.append(outcome)
            stored.save([each.to_dict() for each in outcomes])
            notice(f"{where}: {outcome.summary}")
        point.outcome = outcomes[index]
        write_table(path / "curve.tsv", _result(points, unit).table)
    return _result(points, unit)


def _result(points: Sequence[CurvePoint], unit: str) -> CurveResult:
    """Fits a curve to the points, and predicts the score with twice the text."""
    scored = [
        (point.pairs, point.outcome.metric, point.outcome.value)
        for point in points
        if point.outcome is not None and point.outcome.value is not None
    ]
    if not scored:
        return CurveResult(points, unit, "", None, None, None, "no run has a score")
    metric = scored[0][1]
    doubled = 2 * points[-1].pairs
    try:
        if all(METRICS[metric].is_worst(value) for _, _, value in scored):
            raise ValueError(
                "it shows no skill yet; --set training.monitor=loss compares the losses"
            )
        errors = [to_error(metric, value) for _, _, value in scored]
        result = extrapolate([pairs for pairs, _, _ in scored], errors, doubled)
    except ValueError as error:
        message = f"the points do not determine {metric} with {doubled:,} {unit}: {error}"
        return CurveResult(points, unit, metric, None, None, None, message)
    ends = [from_error(metric, error) for error in (result.low, result.high)]
    value, low, high = from_error(metric, result.error), min(ends), max(ends)
    shown, *limits = (_shown(metric, each) for each in (value, low, high))
    message = (
        f"with {doubled:,} {unit}: {metric} about {shown} ({' to '.join(limits)}); fitted "
        f"{name_of_error(metric)} = {result.law}"
    )
    return CurveResult(points, unit, metric, value, low, high, message)


def _check(settings: Settings) -> None:
    for key, value in (("share", settings.data.share), ("prepared", settings.data.prepared)):
        if value is not None:
            raise SettingsError(
                f"data.{key}: received {value!r}, expected none: a learning curve takes parts of "
                "the text itself"
            )
    training = settings.training
    limits = (training.max_steps, training.max_minutes, training.max_epochs)
    if limits == (None,) * 3 and not training.patience:
        raise SettingsError("no limit: give --max-steps, --max-minutes or --max-epochs")


def _shown(metric: str, value: float) -> str:
    return f"{value:.{METRICS[metric].digits}f}"
