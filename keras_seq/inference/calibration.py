"""Probabilities that are as high as the predictions are often right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# The logarithm of the temperature is searched between these bounds, to this precision.
_BOUNDS = (-3.0, 3.0)
_PRECISION = 1e-4
_GOLDEN = (5**0.5 - 1) / 2


def with_temperature(log_probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Returns the probabilities softmax(log p / T) of each row of `log_probabilities` `(N, C)`."""
    scaled = log_probabilities / temperature
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def fit_temperature(log_probabilities: np.ndarray, labels: Sequence[int]) -> float:
    """Returns the temperature T under which the true labels are most likely.

        T = argmin of -sum over i of log softmax(log p_i / T)[y_i]

    A trained network is often too sure of its predictions. Dividing by one number, which is fitted
    on other texts than those of the training, corrects this and changes no prediction.

    Args:
        log_probabilities: Float `(N, C)`.
        labels: Integers `(N,)`, the true class of each row; -1 for a row to leave out.

    Returns:
        A number from 0.05 to 20; 1.0 without rows.

    Example:

    >>> sure = np.log([[0.99, 0.01], [0.99, 0.01], [0.99, 0.01], [0.01, 0.99]])
    >>> temperature = fit_temperature(sure, [0, 0, 1, 1])
    >>> float(with_temperature(sure, temperature)[0, 0].round(2))  # three of four are right
    0.75

    Reference:
        Guo et al., "On Calibration of Modern Neural Networks", 2017, section 4.2,
        https://arxiv.org/abs/1706.04599
    """
    classes = np.asarray(labels, np.int64)
    log_probabilities, classes = log_probabilities[classes >= 0], classes[classes >= 0]
    if not len(classes):
        return 1.0
    rows = np.arange(len(classes))

    def loss(log_temperature: float) -> float:
        scaled = log_probabilities / np.exp(log_temperature)
        peak = scaled.max(axis=1)
        sums = peak + np.log(np.exp(scaled - peak[:, None]).sum(axis=1))
        return float((sums - scaled[rows, classes]).sum())

    # The loss is convex in 1 / T, so it has one minimum, which a golden-section search finds.
    low, high = _BOUNDS
    first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    losses = loss(first), loss(second)
    while high - low > _PRECISION:
        if losses[0] <= losses[1]:
            high, second = second, first
            first = high - _GOLDEN * (high - low)
            losses = loss(first), losses[0]
        else:
            low, first = first, second
            second = low + _GOLDEN * (high - low)
            losses = losses[1], loss(second)
    return float(np.exp((low + high) / 2))
