"""Converts values of metrics to errors, which fall to 0 or more as a model improves."""

from __future__ import annotations

import math

from keras_seq.settings import METRICS, TEXT_MONITORS

# Metrics from 0 to 1. Larger values are better.
_SHARES = ("accuracy", "macro_f1", "entity_f1", "f1")


def to_error(metric: str, value: float) -> float:
    """Returns the error that belongs to a value.

    It is the distance to the largest value of a score, and the logarithm of a perplexity.

    Raises:
        ValueError: If the metric has no largest value, so that it has no error.

    Example:

    >>> to_error("bleu", 30.0), to_error("loss", 2.5)
    (70.0, 2.5)
    """
    if metric == "perplexity":
        return math.log(value)
    if METRICS[metric].lower_is_better:
        return value
    return _largest(metric) - value


def from_error(metric: str, error: float) -> float:
    """Returns the value that belongs to an error; the inverse of `to_error`."""
    if metric == "perplexity":
        return math.exp(error)
    if METRICS[metric].lower_is_better:
        return error
    return _largest(metric) - error


def name_of_error(metric: str) -> str:
    """Returns the formula of the error."""
    if metric == "perplexity":
        return "log perplexity"
    if METRICS[metric].lower_is_better:
        return metric
    largest = _largest(metric)
    return f"{largest:g} - {metric}" if largest else f"-{metric}"


def _largest(metric: str) -> float:
    if metric in TEXT_MONITORS:
        return 100.0
    if metric in _SHARES:
        return 1.0
    if metric == "elbo":
        # A log-likelihood per line of text, which is below 0.
        return 0.0
    raise ValueError(f"the largest value of {metric} is not known")
