"""Options and results of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keras_seq.run import Run
from keras_seq.settings import METRICS, SearchSettings


@dataclass(frozen=True)
class MetricValue:
    """One metric of a test set.

    Attributes:
        name: The printed name, such as `BLEU`, `EXACT` or `accuracy`.
        value: The value.
        signature: The settings that reproduce the value.
        mean: The mean over resamples; None without resampling.
        interval: Half the width of the 95 % confidence interval; None without resampling.
        digits: Printed decimals.
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
        interval = ""
        if self.mean is not None and self.interval is not None:
            interval = f" ({self.mean:.{self.digits}f} ± {self.interval:.{self.digits}f})"
        return f"{self.name} = {self.value:.{self.digits}f}{interval} {self.signature}"

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields except the digits as JSON data. An infinite value becomes None."""
        value = self.value if math.isfinite(self.value) else None
        return {k: v for k, v in vars(self).items() if k != "digits"} | {"value": value}


class TestSet(NamedTuple):
    """Examples, a model, and the metrics to compute.

    `tokenize` is the tokenizer of BLEU, None for the setting of the run. `samples` is the number of
    bootstrap resamples, None for no confidence intervals. `search` replaces settings of the run.
    """

    run: Run
    model: Any
    sources: Sequence[str]
    references: Sequence[str]
    metrics: Sequence[str]
    tokenize: str | None
    samples: int | None
    search: Mapping[str, Any]

    @property
    def search_settings(self) -> SearchSettings:
        """The search settings of the run with those of `search`."""
        return self.run.settings.with_search(self.search).search


@dataclass(frozen=True)
class Baseline:
    """Metrics of answers that need no model.

    Attributes:
        name: What the answers are, such as "copy of the source".
        metrics: The values by the names of the metrics.
    """

    name: str
    metrics: Mapping[str, MetricValue]


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a run on a test set.

    Attributes:
        step: Step of the evaluated checkpoint.
        lines: Number of examples.
        metrics: The values by the names of the metrics, in printed order.
        outputs: The output of the run for each example; None for a language model.
        truncated: Number of examples whose input or output was truncated at its maximum length.
        baseline: The metrics of a baseline on the same examples; None without a baseline.
        languages: The metrics by target language, if the examples have several.
        no_baseline: The reason why there is no baseline; "" if there is one.
    """

    step: int
    lines: int
    metrics: Mapping[str, MetricValue]
    outputs: tuple[str, ...] | None
    truncated: int = 0
    baseline: Baseline | None = None
    languages: Mapping[str, Mapping[str, MetricValue]] = field(default_factory=dict)
    no_baseline: str = ""

    @property
    def beats_baseline(self) -> bool | None:
        """True if the first metric is better than the baseline's; None without a comparison."""
        name, metric = next(iter(self.metrics.items()))
        if self.baseline is None or name not in self.baseline.metrics:
            return None
        other = self.baseline.metrics[name].value
        return metric.value < other if METRICS[name].lower_is_better else metric.value > other

    def to_dict(self) -> dict[str, Any]:
        """Returns everything except the outputs, ready for JSON."""
        content = {
            "step": self.step,
            "lines": self.lines,
            "truncated": self.truncated,
            "metrics": _to_dicts(self.metrics),
            "baseline": self.baseline
            and {"name": self.baseline.name, "metrics": _to_dicts(self.baseline.metrics)},
            "beats_baseline": self.beats_baseline,
        }
        if self.no_baseline:
            content["no_baseline"] = self.no_baseline
        if self.languages:
            content["languages"] = {
                name: _to_dicts(metrics) for name, metrics in self.languages.items()
            }
        return content


def _to_dicts(metrics: Mapping[str, MetricValue]) -> dict[str, Any]:
    return {name: metric.to_dict() for name, metric in metrics.items()}
