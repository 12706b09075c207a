"""95 % confidence intervals of metrics that are computed from one row of counts per line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SEED = 12345


def resampled(
    metric: Callable[[np.ndarray], float], lines: int, samples: int | None
) -> tuple[float | None, float | None]:
    """Mean and half width of the 95 % interval of a metric, by bootstrap resampling.

    The interval is defined as by sacreBLEU: half the distance between the 2.5 % and the 97.5 %
    quantile of the values of `samples` resamples of `lines` lines each. `metric` takes how often
    each line is in a resample, int64 `(lines,)`. Both results are None if `samples` is None or a
    value is not finite.

    Example:

    >>> resampled(lambda counts: 2.0, lines=3, samples=100)
    (2.0, 0.0)
    """
    if samples is None:
        return None, None
    generator = np.random.default_rng(SEED)
    values = np.empty(samples)
    for number in range(samples):
        chosen = generator.integers(lines, size=lines)
        values[number] = metric(np.bincount(chosen, minlength=lines))
    if not np.isfinite(values).all():
        return None, None
    values.sort()
    outside = samples // 40
    half = 0.5 * (values[samples - outside - 1] - values[outside])
    return float(values.mean()), float(half)


def spread(count: int, total: int) -> list[int]:
    """Returns at most `count` of `total` line indices, evenly spaced; always the same.

    Example:

    >>> spread(3, 10)
    [0, 3, 6]
    """
    count = min(count, total)
    return [index * total // count for index in range(count)]
