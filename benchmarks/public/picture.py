"""Draws the scores of all systems on each task as bars."""

from __future__ import annotations

import pathlib
import statistics
from typing import Any


def draw(results: list[Any], path: pathlib.Path) -> None:
    """Writes the picture of the scores in percent; keras-seq is dark, its peers are light."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Percent, of which more is better.
    results = [result for result in results if " per " not in result.task.metric]
    pyplot.rcParams["svg.hashsalt"] = "keras-seq"
    figure, axes = pyplot.subplots(figsize=(8, 0.3 * len(results) + 1))
    names = [f"{result.task.name}: {result.system}" for result in results]
    bars = axes.barh(
        range(len(results)),
        [statistics.mean(result.scores) for result in results],
        xerr=[
            statistics.stdev(result.scores) if len(result.scores) > 1 else 0 for result in results
        ],
        color=["#234" if result.system == "keras-seq" else "#9bc" for result in results],
    )
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.set_yticks(range(len(results)), names)
    axes.invert_yaxis()
    axes.set_xlabel("percent, by the metric of the task")
    figure.savefig(
        path, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None
    )
    pyplot.close(figure)
