"""Fits a power law to errors by the number of training pairs, and extrapolates it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Exponents to try. Most learning curves have one between 0.05 and 1.
_EXPONENTS = np.linspace(0.01, 2.0, 200)
_MIN_POINTS = 4
# Standard errors on each side of a prediction.
_ERRORS = 2.0


@dataclass(frozen=True)
class PowerLaw:
    """The curve `a + b n^-c` with `a >= 0` and `b >= 0`."""

    a: float
    b: float
    c: float

    def __call__(self, count: float) -> float:
        return float(self.a + self.b * count**-self.c)

    def __str__(self) -> str:
        return f"{self.a:.4g} + {self.b:.4g} n^-{self.c:.2f}"


@dataclass(frozen=True)
class Extrapolation:
    """A prediction from a fitted power law.

    Attributes:
        law: The curve through all points.
        error: The predicted error.
        low, high: Two standard errors below and above, by the jackknife: from the curves that are
            fitted without one of the points.
    """

    law: PowerLaw
    error: float
    low: float
    high: float


def fit_power_law(counts: Sequence[float], errors: Sequence[float]) -> PowerLaw:
    """Fits `a + b n^-c` to errors, by least squares of the relative deviations.

    Args:
        counts: Numbers of training pairs, above 0.
        errors: Errors or losses, above 0.

    Reference:
        Hestness et al., "Deep Learning Scaling is Predictable, Empirically", 2017,
        https://arxiv.org/abs/1712.00409

    Example:

    >>> law = fit_power_law([100, 200, 400, 800], [2 + 30 * n**-0.5 for n in (100, 200, 400, 800)])
    >>> round(law.a, 2), round(law.b, 1), round(law.c, 2)
    (2.0, 30.0, 0.5)
    """
    # Relative to the largest count, so that the powers are of moderate size.
    largest = max(counts)
    scaled = np.asarray(counts, np.float64) / largest
    observed = np.asarray(errors, np.float64)
    best = (np.inf, 0.0, 0.0, 0.0)
    for exponent in _EXPONENTS.tolist():
        power = scaled**-exponent / observed
        a, b = _non_negative(1 / observed, power)
        squares = float(((a / observed + b * power - 1) ** 2).sum())
        if squares < best[0]:
            best = (squares, a, b, exponent)
    _, a, b, c = best
    return PowerLaw(a, b * largest**c, c)


def extrapolate(counts: Sequence[float], errors: Sequence[float], count: float) -> Extrapolation:
    """Predicts the error for another number of pairs, with a range.

    Args:
        counts: Numbers of training pairs, increasing, at least 4.
        errors: The error for each.
        count: Number of pairs to predict for.

    Raises:
        ValueError: If the points do not determine the prediction; the message says why.
    """
    if len(counts) < _MIN_POINTS:
        raise ValueError(f"{len(counts)} points, expected at least {_MIN_POINTS}")
    if min(errors) <= 0:
        raise ValueError("the best possible value is reached already")
    gain = errors[-2] - errors[-1]
    if gain <= 0:
        raise ValueError(f"no improvement from {counts[-2]:,.0f} to {counts[-1]:,.0f}")
    law = fit_power_law(counts, errors)
    predictions = []
    for left_out in range(len(counts)):
        kept = [index for index in range(len(counts)) if index != left_out]
        part = fit_power_law([counts[i] for i in kept], [errors[i] for i in kept])
        predictions.append(part(count))
    margin = _ERRORS * jackknife_error(predictions)
    if margin > gain:
        raise ValueError("the prediction changes by more than the last gain if a point is left out")
    return Extrapolation(law, law(count), max(0.0, law(count) - margin), law(count) + margin)


def jackknife_error(estimates: Sequence[float]) -> float:
    """Returns the standard error of an estimate, from those that leave out one point each.

    Reference:
        Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", 1982
    """
    number = len(estimates)
    deviations = np.asarray(estimates) - np.mean(estimates)
    return float(np.sqrt((number - 1) / number * (deviations**2).sum()))


def _non_negative(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Returns `a, b >= 0` with the least squares of `a * first + b * second - 1`."""
    columns = np.stack([first, second], axis=1)
    (a, b), *_ = np.linalg.lstsq(columns, np.ones(len(first)), rcond=None)
    if a < 0:
        return 0.0, max(0.0, float(second.sum() / (second**2).sum()))
    if b < 0:
        return max(0.0, float(first.sum() / (first**2).sum())), 0.0
    return float(a), float(b)
