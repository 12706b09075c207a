"""Schedules of rates and loss weights, as functions of the update."""

import math
from collections.abc import Callable
from typing import Any

from keras import ops

# Returns a float32 scalar for the number of updates made so far.
Schedule = Callable[[Any], Any]

KINDS = ("constant", "linear", "exponential", "inverse_sigmoid")


def scheduled_sampling_rate(kind: str, rate: float, half_steps: float) -> Schedule:
    """Schedule for the fraction of target tokens that scheduled sampling replaces.

    With e(i), the probability of the true token after i updates of Bengio et al.:

        constant          rate
        linear            rate (1 - e(i)),  e(i) = max(0, 1 - i / (2 half_steps))
        exponential       rate (1 - e(i)),  e(i) = k^i,  k = 2^(-1 / half_steps)
        inverse_sigmoid   rate (1 - e(i)),  e(i) = k / (k + exp(i / k)),
                                            k log k = half_steps

    All but the first reach half of `rate` after `half_steps` updates. They start at 0, the last at
    rate / (1 + k).

    Args:
        kind: "constant", "linear", "exponential" or "inverse_sigmoid".
        rate: Float in [0, 1], the final rate.
        half_steps: Positive number of updates.

    Returns:
        A function of the number of updates made so far, an integer or a scalar tensor, that returns
        a float32 scalar tensor. A compiled step may call it.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> rate = scheduled_sampling_rate("linear", 0.5, 100)
    >>> float(rate(100)), float(rate(1000))
    (0.25, 0.5)

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks",
        2015, section 2.4, https://arxiv.org/abs/1506.03099
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(KINDS)}, received {kind!r}.")
    if not 0 <= rate <= 1:
        raise ValueError(f"`rate` must be from 0 to 1, received {rate!r}.")
    if not half_steps > 0:
        raise ValueError(f"`half_steps` must be positive, received {half_steps!r}.")
    k = _k_log_k(half_steps)

    def rate_at(step: Any) -> Any:
        step = ops.cast(step, "float32")
        if kind == "constant":
            return ops.full((), rate, "float32")
        if kind == "linear":
            return rate * ops.minimum(step / (2 * half_steps), 1.0)
        if kind == "exponential":
            return rate * (1 - ops.exp(-math.log(2) / half_steps * step))
        # Equals 1 - k / (k + exp(i / k)) without overflow.
        return rate * ops.sigmoid(step / k - math.log(k))

    return rate_at


def linear_annealing(steps: float, start: float = 0.0, end: float = 1.0) -> Schedule:
    """Schedule of a weight that moves linearly from `start` to `end` and stays there.

        weight(i) = start + (end - start) min(1, i / steps)

    Args:
        steps: Positive number of updates.
        start: Float, the initial weight. Defaults to 0.
        end: Float, the final weight. Defaults to 1.

    Returns:
        A function of the number of updates made so far that returns a float32 scalar tensor.

    Raises:
        ValueError: If `steps` is not positive.

    Example:

    >>> float(linear_annealing(100)(25))
    0.25
    """
    _check_steps(steps)

    def weight_at(step: Any) -> Any:
        progress = ops.minimum(ops.cast(step, "float32") / steps, 1.0)
        return start + (end - start) * progress

    return weight_at


def logistic_annealing(half_steps: float, steepness: float | None = None) -> Schedule:
    """Schedule of a weight that moves from 0 to 1 along a logistic curve.

        weight(i) = 1 / (1 + exp(-steepness (i - half_steps)))

    Args:
        half_steps: Positive number of updates, after which the weight is a half.
        steepness: Positive float. Defaults to 10 / `half_steps`.

    Returns:
        A function of the number of updates, as for `linear_annealing`.

    Raises:
        ValueError: If an argument is not positive.

    Example:

    >>> float(logistic_annealing(100)(100))
    0.5

    Reference:
        Bowman et al., "Generating Sentences from a Continuous Space", 2016, section 3.1,
        https://arxiv.org/abs/1511.06349
    """
    _check_steps(half_steps)
    steepness = 10 / half_steps if steepness is None else steepness
    if not steepness > 0:
        raise ValueError(f"`steepness` must be positive, received {steepness!r}.")
    return lambda step: ops.sigmoid(steepness * (ops.cast(step, "float32") - half_steps))


def cyclical_annealing(steps: float, cycles: int = 4, rise: float = 0.5) -> Schedule:
    """Schedule of a weight that rises from 0 to 1 several times and then stays at 1.

        weight(i) = min(1, (i mod cycle) / (rise cycle)),  cycle = steps / cycles

    Args:
        steps: Positive number of updates in all cycles together.
        cycles: Positive integer. Defaults to 4.
        rise: Float in (0, 1], the fraction of a cycle in which the weight rises. Defaults to 0.5.

    Returns:
        A function of the number of updates, as for `linear_annealing`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> weight = cyclical_annealing(400, cycles=4)
    >>> float(weight(25)), float(weight(75)), float(weight(100)), float(weight(500))
    (0.5, 1.0, 0.0, 1.0)

    Reference:
        Fu et al., "Cyclical Annealing Schedule: A Simple Approach to Mitigating KL Vanishing",
        2019, equation 6, https://arxiv.org/abs/1903.10145
    """
    _check_steps(steps)
    if not isinstance(cycles, int) or cycles < 1:
        raise ValueError(f"`cycles` must be a positive integer, received {cycles!r}.")
    if not 0 < rise <= 1:
        raise ValueError(f"`rise` must be above 0 and at most 1, received {rise!r}.")
    cycle = steps / cycles

    def weight_at(step: Any) -> Any:
        step = ops.cast(step, "float32")
        weight = ops.minimum(ops.mod(step, cycle) / (rise * cycle), 1.0)
        return ops.where(step >= steps, 1.0, weight)

    return weight_at


def _check_steps(steps: float) -> None:
    if not steps > 0:
        raise ValueError(f"The number of updates must be positive, received {steps!r}.")


def _k_log_k(value: float) -> float:
    """Returns the k > 1 with k log k = value, by Newton's method."""
    k = 1 + value
    for _ in range(50):
        k -= (k * math.log(k) - value) / (math.log(k) + 1)
    return k
