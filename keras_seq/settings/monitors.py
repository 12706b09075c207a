"""Metrics that can select the best checkpoint (`training.monitor`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from keras_seq.plugins.registry import WithPlugins, reserve


class Monitor(NamedTuple):
    """One metric of a validation.

    Attributes:
        label: The name of the metric in a sentence.
        score_name: The name of a text score, printed before its signature; "" for other metrics.
        lower_is_better: True if smaller values are better.
        worst: The value of a model that has learned nothing; None if there is no such value.
        digits: Number of printed decimals.
    """

    label: str
    score_name: str = ""
    lower_is_better: bool = False
    worst: float | None = None
    digits: int = 2

    @property
    def mode(self) -> Literal["max", "min"]:
        """The `mode` of callbacks: "max" or "min"."""
        return "min" if self.lower_is_better else "max"

    def is_worst(self, value: float) -> bool:
        """Tests if a value, rounded as printed, is the worst possible value or even worse."""
        if self.worst is None:
            return False
        value, worst = round(value, self.digits), self.worst
        return value >= worst if self.lower_is_better else value <= worst


_MONITORS: Mapping[str, Monitor] = MappingProxyType(
    {
        "exact": Monitor("exact match", "EXACT", worst=0.0),
        "cer": Monitor("character error rate", "CER", lower_is_better=True, worst=100.0),
        "wer": Monitor("word error rate", "WER", lower_is_better=True, worst=100.0),
        "chrf": Monitor("chrF", "chrF2", worst=0.0),
        "bleu": Monitor("BLEU", "BLEU", worst=0.0),
        "ter": Monitor("TER", "TER", lower_is_better=True, worst=100.0),
        "loss": Monitor("loss", lower_is_better=True, digits=4),
        "perplexity": Monitor("perplexity", lower_is_better=True),
        "accuracy": Monitor("accuracy", worst=0.0, digits=4),
        "macro_f1": Monitor("macro F1", worst=0.0, digits=4),
        "entity_f1": Monitor("entity F1", worst=0.0, digits=4),
        "f1": Monitor("F1", worst=0.0, digits=4),
        "elbo": Monitor("evidence lower bound"),
        "reconstruction": Monitor("reconstruction loss", lower_is_better=True, digits=4),
    }
)
# Metrics of a test set that select no checkpoint.
_OTHERS: Mapping[str, Monitor] = MappingProxyType(
    {
        "bits_per_character": Monitor("bits per character", lower_is_better=True, digits=3),
        "false_alarms": Monitor("false alarms per hour", lower_is_better=True),
        "calibration_error": Monitor("calibration error", lower_is_better=True, digits=4),
    }
)


def _metric_of_plugin(name: str, metric: Any) -> Monitor:
    lower_is_better, digits = metric.lower_is_better, metric.digits
    return Monitor(metric.label, lower_is_better=lower_is_better, digits=digits)


# Values of `training.monitor`, and metrics of a test set.
MONITORS = WithPlugins("metric", _MONITORS, _metric_of_plugin)
METRICS = WithPlugins("metric", {**_MONITORS, **_OTHERS}, _metric_of_plugin)
# Other values in the log of a validation.
_LOGGED = ("kind", "step", "minutes", "monitor", "signature")
_FITTED = ("temperature", "threshold", "outside_penalty")
reserve("metric", ("auto", *_MONITORS, *_OTHERS, *_LOGGED, *_FITTED))
# Scores of decoded text, computed by `keras_seq.scoring`.
TEXT_MONITORS = tuple(name for name, monitor in _MONITORS.items() if monitor.score_name)
