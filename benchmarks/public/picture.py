"""Draws the scores of all systems on each task as bars."""

from __future__ import annotations

import pathlib
import statistics
from typing import Any


def unit(metric: str) -> str:
    """Returns the label of the axis of a metric."""
    if " per " in metric:
        return f"{metric}, less is better"
    return "percent, by the metric of the task, more is better"


def draw(results: list[Any], path: pathlib.Path) -> None:
    """Writes the picture, with a panel for each unit; keras-seq is dark, its peers are light."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels: dict[str, list[Any]] = {}
    for result in results:
        panels.setdefault(unit(result.task.metric), []).append(result)
    pyplot.rcParams["svg.hashsalt"] = "keras-seq"
    figure, rows = pyplot.subplots(
        len(panels),
        figsize=(8, 0.3 * len(results) + 0.8 * len(panels)),
        height_ratios=[len(panel) + 1 for panel in panels.values()],
        layout="constrained",
        squeeze=False,
    )
    for axes, (label, panel) in zip(rows[:, 0], panels.items(), strict=True):
        deviations = [
            statistics.stdev(result.scores) if len(result.scores) > 1 else 0 for result in panel
        ]
        bars = axes.barh(
            range(len(panel)),
            [statistics.mean(result.scores) for result in panel],
            xerr=deviations,
            color=["#234" if result.system.startswith("keras-seq") else "#9bc" for result in panel],
        )
        axes.bar_label(bars, fmt="%.3g", padding=3)
        names = [f"{result.task.name}: {result.system}" for result in panel]
        axes.set_yticks(range(len(panel)), names)
        axes.invert_yaxis()
        axes.set_xlabel(label)
        axes.margins(x=0.1)
        axes.set_xlim(left=0)
    date = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, bbox_inches="tight", metadata=date)
    pyplot.close(figure)
