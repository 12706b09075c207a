"""Metrics of plugins."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from keras_seq.evaluation.resampling import SEED, resampled
from keras_seq.evaluation.values import MetricValue
from keras_seq.plugins import added
from keras_seq.plugins.registry import Metric, call
from keras_seq.settings import METRICS


def plugin_values(
    outputs: Sequence[str],
    references: Sequence[str],
    names: Sequence[str],
    samples: int | None,
    lowercased: bool = False,
) -> dict[str, MetricValue]:
    """Computes metrics of plugins, with confidence intervals if `samples` is not None.

    `lowercased` says that the lines were in lower case, for the signature.
    """
    values = {}
    for name in names:
        metric: Metric = added("metric")[name]

        def of_resample(counts: np.ndarray, metric: Metric = metric, name: str = name) -> float:
            columns = (
                list(itertools.chain.from_iterable(map(itertools.repeat, lines, counts.tolist())))
                for lines in (outputs, references)
            )
            return call("metric", name, lambda: float(metric.function(*columns)))

        mean, interval = resampled(of_resample, len(outputs), samples)
        value = of_resample(np.ones(len(outputs), np.int64))
        signature = f"lines:{len(outputs)}" + "|case:lc" * lowercased
        if samples is not None:
            signature += f"|bs:{samples}|seed:{SEED}"
        digits = metric.digits
        values[name] = MetricValue(metric.label, value, signature, mean, interval, digits)
    return values


def monitored_plugin_value(
    monitor: str, outputs: Sequence[str], references: Sequence[str]
) -> dict[str, float]:
    """Returns the value of the monitor by its name if it is a metric of a plugin, otherwise {}."""
    if monitor not in added("metric"):
        return {}
    values = plugin_values(outputs, references, [monitor], None)
    return {name: value.value for name, value in values.items()}


def shown(values: Mapping[str, float]) -> str:
    """Returns values for a line of text, with a comma after each."""
    named = ((METRICS[name], value) for name, value in values.items())
    return "".join(f"{metric.label} {value:.{metric.digits}f}, " for metric, value in named)
