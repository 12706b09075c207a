"""The result of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MetricValue:
    """One metric of a test set.

    Attributes:
        name: As it is printed, such as `BLEU`, `EXACT` or `accuracy`.
        value: The value.
        signature: What is needed to get the same number again.
        mean: The mean over resamples; None without a confidence interval.
        interval: Half the width of the 95 % interval; None without one.
        digits: Decimals that are printed.
    """

    name: str
    value: float
    signature: str
    mean: float | None = None
    interval: float | None = None
    digits: int = 2

    @property
    def text(self) -> str:
        """The line to print, such as `EXACT = 81.00 (80.96 ± 3.62) nrefs:1|...`."""
        between = ""
        if self.mean is not None and self.interval is not None:
            between = f" ({self.mean:.{self.digits}f} ± {self.interval:.{self.digits}f})"
        return f"{self.name} = {self.value:.{self.digits}f}{between} {self.signature}"


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a run on a test set.

    Attributes:
        step: Step of the checkpoint that was evaluated.
        lines: Number of examples.
        metrics: The values by the names of the metrics, in the order that they are printed.
        outputs: What the run wrote for each example; None for a language model.
        cut: Number of examples whose input or output was cut at its longest length.
    """

    step: int
    lines: int
    metrics: Mapping[str, MetricValue]
    outputs: tuple[str, ...] | None
    cut: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Everything except the outputs, as JSON can hold it."""
        return {
            "step": self.step,
            "lines": self.lines,
            "cut": self.cut,
            "metrics": {name: _plain(one) for name, one in self.metrics.items()},
        }


def _plain(one: MetricValue) -> dict[str, Any]:
    values = {key: value for key, value in vars(one).items() if key != "digits"}
    # JSON has no infinity.
    if not math.isfinite(one.value):
        values["value"] = None
    return values
