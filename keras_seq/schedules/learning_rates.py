"""Learning rate schedules for sequence models."""

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
    peak: float, warmup_steps: int, max_steps: int
) -> keras.optimizers.schedules.CosineDecay:
    """Builds Keras' schedule of a linear warmup and half a cosine, which ends near 0.

        rate(step) = peak * step / (warmup + 1),                                  step <= warmup
        rate(step) = peak / 2 * (1 + cos(pi (step - 1 - warmup) / (max - warmup))),  step > warmup

    with steps from 1. The rate is 0 after the last step `max`.

    Args:
        peak: Positive float, the rate of the first update after the warmup.
        warmup_steps: Integer, 0 or more.
        max_steps: Positive integer, the number of updates of the training.

    Example:

    >>> schedule = warmup_cosine(peak=0.1, warmup_steps=1, max_steps=5)
    >>> [round(float(schedule(step)), 3) for step in range(6)]
    [0.05, 0.1, 0.085, 0.05, 0.015, 0.0]

    Reference:
        Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017,
        equation 5, without restarts, https://arxiv.org/abs/1608.03983
    """
    steps = max(1, max_steps - warmup_steps)
    if not warmup_steps:
        return keras.optimizers.schedules.CosineDecay(peak, steps)
    return keras.optimizers.schedules.CosineDecay(
        peak / (warmup_steps + 1), steps, warmup_target=peak, warmup_steps=warmup_steps
    )
