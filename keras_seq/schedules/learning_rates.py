"""Learning rate schedules for sequence models."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_seq")
class InverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate with linear warmup and inverse square root decay.

        rate(step) = peak * min(step / warmup, sqrt(warmup / step)),  step from 1

    This is the usual schedule for training a Transformer with Adam.

    Args:
        peak: Positive float, the rate at the end of the warmup.
        warmup_steps: Integer, 0 or more. Both 0 and 1 start at the peak.

    Raises:
        ValueError: If `peak` is not positive or `warmup_steps` is negative.

    Example:

    >>> schedule = InverseSquareRoot(peak=0.1, warmup_steps=4)
    >>> [round(float(schedule(step)), 3) for step in (0, 3, 15)]
    [0.025, 0.1, 0.05]

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 5.3,
        https://arxiv.org/abs/1706.03762
    """

    def __init__(self, peak: float, warmup_steps: int) -> None:
        if not peak > 0:
            raise ValueError(f"`peak` must be positive, received {peak!r}.")
        if warmup_steps < 0:
            raise ValueError(f"`warmup_steps` must be 0 or more, received {warmup_steps!r}.")
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> Any:
        step = ops.cast(step, "float32") + 1.0
        warmup = float(max(1, self.warmup_steps))
        return self.peak * ops.minimum(step / warmup, ops.sqrt(warmup / step))

    def get_config(self) -> dict[str, Any]:
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}


def noam(scale: float, units: int, warmup_steps: int) -> InverseSquareRoot:
    """Builds the schedule of "Attention Is All You Need" (Vaswani et al., 2017).

        rate(step) = scale * units^-0.5 * min(step^-0.5, step * warmup^-1.5)

    Args:
        scale: Positive float.
        units: Positive integer, the width of the model.
        warmup_steps: Positive integer.

    Returns:
        An `InverseSquareRoot` with the peak scale * (units * warmup) ^ -0.5.

    Example:

    >>> round(float(noam(1.0, 128, 1000).peak), 6)
    0.002795
    """
    return InverseSquareRoot(scale * (units * max(1, warmup_steps)) ** -0.5, warmup_steps)


def warmup_cosine(
    peak: float, warmup_steps: int, max_steps: int, cycles: int = 1
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Builds a schedule of a linear warmup and one or more half cosines, which end near 0.

        rate(step) = peak * step / (warmup + 1),                                  step <= warmup
        rate(step) = peak / 2 * (1 + cos(pi (step - 1 - start) / (end - start))),  step > warmup

    with steps from 1. With one cycle, `start` is `warmup` and `end` is `max`. Otherwise they are
    the start and the end of the cycle of the step; see `cycle_ends`. The rate is 0 after the last
    step `max`.

    Args:
        peak: Positive float, the rate of the first update of each cycle.
        warmup_steps: Integer, 0 or more.
        max_steps: Positive integer, the number of updates of the training.
        cycles: Positive integer, how many times the rate falls from the peak to 0.

    Returns:
        A `keras.optimizers.schedules.CosineDecay`, or with several cycles a `CosineCycles`.

    Example:

    >>> schedule = warmup_cosine(peak=0.1, warmup_steps=1, max_steps=5)
    >>> [round(float(schedule(step)), 3) for step in range(6)]
    [0.05, 0.1, 0.085, 0.05, 0.015, 0.0]

    Reference:
        Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017,
        equation 5, https://arxiv.org/abs/1608.03983; with several cycles Huang et al., "Snapshot
        Ensembles: Train 1, Get M for Free", 2017, equation 2, https://arxiv.org/abs/1704.00109
    """
    if cycles > 1:
        return CosineCycles(peak, warmup_steps, cycle_ends(warmup_steps, max_steps, cycles))
    steps = max(1, max_steps - warmup_steps)
    if not warmup_steps:
        return keras.optimizers.schedules.CosineDecay(peak, steps)
    return keras.optimizers.schedules.CosineDecay(
        peak / (warmup_steps + 1), steps, warmup_target=peak, warmup_steps=warmup_steps
    )


def cycle_ends(warmup_steps: int, max_steps: int, cycles: int) -> list[int]:
    """Returns the last step of each cycle of a schedule with restarts, counted from 1.

    The cycles share the updates after the warmup equally; some cycles are one update longer than
    others. The last cycle ends at `max_steps`.

    Raises:
        ValueError: If there are fewer updates after the warmup than cycles.

    Example:

    >>> cycle_ends(warmup_steps=10, max_steps=110, cycles=3)
    [43, 76, 110]
    """
    steps = max_steps - warmup_steps
    if not 1 <= cycles <= steps:
        raise ValueError(
            f"`cycles` must be from 1 to the {steps} updates after the warmup, received {cycles!r}."
        )
    return [warmup_steps + steps * number // cycles for number in range(1, cycles + 1)]


@keras.saving.register_keras_serializable(package="keras_seq")
class CosineCycles(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that falls to 0 along half a cosine several times, after a linear warmup.

    See `warmup_cosine` for the formula. After the last cycle, the rate is 0.

    Args:
        peak: Positive float, the rate of the first update of each cycle.
        warmup_steps: Integer, 0 or more.
        ends: Ascending integers above `warmup_steps`, the last step of each cycle.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> schedule = CosineCycles(peak=0.1, warmup_steps=0, ends=[2, 4])
    >>> [round(float(schedule(step)), 3) for step in range(5)]
    [0.1, 0.05, 0.1, 0.05, 0.0]

    Reference:
        Huang et al., "Snapshot Ensembles: Train 1, Get M for Free", 2017, equation 2,
        https://arxiv.org/abs/1704.00109
    """

    def __init__(self, peak: float, warmup_steps: int, ends: Sequence[int]) -> None:
        if not peak > 0:
            raise ValueError(f"`peak` must be positive, received {peak!r}.")
        bounds = [warmup_steps, *ends]
        if len(bounds) < 2 or bounds != sorted({*bounds}) or warmup_steps < 0:
            raise ValueError(
                f"`ends` must ascend from above `warmup_steps` ({warmup_steps!r}), which must be 0 "
                f"or more; received {ends!r}."
            )
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.ends = list(ends)

    def __call__(self, step: Any) -> Any:
        step = ops.cast(step, "float32")
        starts = [self.warmup_steps, *self.ends[:-1]]
        rates = ops.zeros_like(step)
        for start, end in zip(starts, self.ends, strict=True):
            falling = 0.5 * (1 + ops.cos(math.pi * (step - start) / (end - start)))
            rates = ops.where((step >= start) & (step < end), falling, rates)
        rising = (step + 1) / (self.warmup_steps + 1)
        return self.peak * ops.where(step < self.warmup_steps, rising, rates)

    def get_config(self) -> dict[str, Any]:
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "ends": self.ends}
