"""The course of a training: what its log has, as columns."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from keras_seq.run import Run
from keras_seq.text import InputError

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class History:
    """The course of a training.

    Attributes:
        training: Columns of the progress lines: `step`, `loss`, `learning_rate`, `minutes`, ...
        validation: Columns of the validations: `step`, `loss`, the metrics of the task, ...
            A value that a line does not have is None.
        monitor: The metric that chose the best checkpoint.
        best_step: The update of the best validation; None if there was none.
    """

    training: Columns
    validation: Columns
    monitor: str | None
    best_step: int | None

    @classmethod
    def of_run(cls, run: Run) -> History:
        """Reads the log of a run."""
        training, validation = (
            _columns(list(run.logs.entries(kind))) for kind in ("training", "validation")
        )
        monitor = validation.get("monitor", [None])[-1]
        return cls(training, validation, monitor, run.checkpoints.best_step)

    def plot(self) -> Any:
        """Draws the losses, and the metric of the validations, over the updates.

        Returns a matplotlib figure, which notebooks show; `figure.savefig(path)` writes it. Raises
        InputError if matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise InputError(
                "a plot of the history needs matplotlib: python -m pip install 'keras-seq[plot]'"
            ) from None
        figure = _shown(Figure)(figsize=(9, 3), layout="constrained")
        losses, metric = figure.subplots(1, 2)
        for name, columns in (("training", self.training), ("validation", self.validation)):
            if "loss" in columns:
                losses.plot(columns["step"], columns["loss"], label=name)
        losses.set(xlabel="updates", ylabel="loss")
        losses.legend()
        if self.monitor in self.validation:
            metric.plot(self.validation["step"], self.validation[self.monitor], marker="o")
        if self.best_step is not None:
            metric.axvline(self.best_step, linestyle=":", label="best")
            metric.legend()
        metric.set(xlabel="updates", ylabel=self.monitor)
        return figure


def _shown(figure_class: Any) -> Any:
    """Returns a class of figures that notebooks show also if pyplot was not imported."""

    class ShownFigure(figure_class):
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png")
            return file.getvalue()

    return ShownFigure


def _columns(lines: list[dict[str, Any]]) -> Columns:
    names = dict.fromkeys(name for line in lines for name in line if name != "kind")
    return {name: [line.get(name) for line in lines] for name in names}
