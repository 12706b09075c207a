"""The course of a training on the page of a report."""

from __future__ import annotations

from typing import Any

from keras_seq.analysis.history import Columns, History
from keras_seq.run import Run
from keras_seq.settings import MONITORS


def facts(run: Run, parameters: int, history: History) -> list[list[str]]:
    """Returns rows of a name and a text: the task, the model, its training, the best validation."""
    rows = [
        ["task", run.settings.task],
        ["model", f"{run.settings.model.family}, {parameters:,} parameters"],
    ]
    logged = [
        (step, minutes)
        for columns in (history.training, history.validation)
        for step, minutes in _pairs(columns, "minutes")[-1:]
    ]
    if logged:
        steps, minutes = max(logged)
        rows.append(["training", f"{steps:,} updates in {minutes:.1f} minutes"])
    name = history.monitor or ""
    best = dict(_pairs(history.validation, name)).get(history.best_step)
    if best is not None and (monitor := MONITORS.get(name)) is not None:
        text = f"{monitor.label} {best:.{monitor.digits}f} after {history.best_step:,} updates"
        rows.append(["best validation", text])
    return rows


def curves(history: History) -> list[dict[str, Any]]:
    """Returns the curves of the losses, and of the metric that chose the best checkpoint."""

    def series(name: str, columns: Columns, key: str) -> dict[str, Any]:
        return {"name": name, "points": _pairs(columns, key)}

    losses = [
        series("training", history.training, "loss"),
        series("validation", history.validation, "loss"),
    ]
    curves: list[dict[str, Any]] = [{"title": "loss", "series": losses}]
    name = history.monitor or ""
    # A log from elsewhere may name a metric that does not exist.
    if name != "loss" and (monitor := MONITORS.get(name)) is not None:
        values = series("validation", history.validation, name)
        curves.append({"title": monitor.label, "series": [values]})
    return [
        {**curve, "best": history.best_step, "series": kept}
        for curve in curves
        if (kept := [one for one in curve["series"] if one["points"]])
    ]


def _pairs(columns: Columns, name: str) -> list[tuple[Any, Any]]:
    """Returns the steps of a log and the values of a column, without those that are missing."""
    values = zip(columns.get("step", []), columns.get(name, []), strict=False)
    return [(step, value) for step, value in values if value is not None]
