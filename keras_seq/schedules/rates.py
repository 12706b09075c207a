"""Rates that change in the course of a training, as functions of the update."""

import math

from keras import ops

__all__ = [
    "cyclical_annealing",
    "linear_annealing",
    "logistic_annealing",
    "scheduled_sampling_rate",
]

KINDS = ("constant", "linear", "exponential", "inverse_sigmoid")


def scheduled_sampling_rate(kind, rate, half_steps):
    """Share of target tokens that the model's own words take the place of, by update.

    With e(i) the probability of the true token after i updates of Bengio et al.:

        constant          rate
        linear            rate (1 - e(i)),  e(i) = max(0, 1 - i / (2 half_steps))
        exponential       rate (1 - e(i)),  e(i) = k^i,  k = 2^(-1 / half_steps)
        inverse_sigmoid   rate (1 - e(i)),  e(i) = k / (k + exp(i / k)),
                                            k log k = half_steps

    So each but the first is at half of `rate` after `half_steps` updates, apart from
    a start of 1 / (1 + k) for the last.

    Args:
        kind: One of the four.
        rate: Float in [0, 1], what it tends to.
        half_steps: Positive number of updates.

    Returns:
        A function of an integer or a scalar tensor, the updates made so far, that
        gives a float32 scalar tensor. It may be called inside a compiled step.

    Raises:
        ValueError: If an argument is none of those.

    Example:

    >>> rate = scheduled_sampling_rate("linear", 0.5, 100)
    >>> float(rate(100)), float(rate(1000))
    (0.25, 0.5)

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent
        Neural Networks", 2015, section 2.4, https://arxiv.org/abs/1506.03099
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(KINDS)}, received {kind!r}.")
    if not 0 <= rate <= 1:
        raise ValueError(f"`rate` must be from 0 to 1, received {rate!r}.")
    if not half_steps > 0:
        raise ValueError(f"`half_steps` must be positive, received {half_steps!r}.")
    k = _k_log_k(half_steps)

    def rate_at(step):
        step = ops.cast(step, "float32")
        if kind == "constant":
            return ops.full((), rate, "float32")
        if kind == "linear":
            return rate * ops.minimum(step / (2 * half_steps), 1.0)
        if kind == "exponential":
            return rate * (1 - ops.exp(-math.log(2) / half_steps * step))
        # 1 - k / (k + exp(i / k)), in a form that does not overflow.
        return rate * ops.sigmoid(step / k - math.log(k))

    return rate_at


def linear_annealing(steps, start=0.0, end=1.0):
    """A weight that goes from `start` to `end` in `steps` updates, and stays.

    Args:
        steps: Positive number of updates.
        start, end: Floats.

    Returns:
        A function of the updates made so far that gives a float32 scalar tensor.

    Raises:
        ValueError: If `steps` is not positive.

    Example:

    >>> float(linear_annealing(100)(25))
    0.25
    """
    _check_steps(steps)

    def weight_at(step):
        done = ops.minimum(ops.cast(step, "float32") / steps, 1.0)
        return start + (end - start) * done

    return weight_at


def logistic_annealing(half_steps, steepness=None):
    """A weight that goes from 0 to 1 along 1 / (1 + exp(-steepness (i - half_steps))).

    Args:
        half_steps: Positive number of updates, until a half.
        steepness: Positive float; by default 10 / `half_steps`.

    Returns:
        As `linear_annealing`.

    Raises:
        ValueError: If an argument is not positive.

    Example:

    >>> float(logistic_annealing(100)(100))
    0.5

    Reference:
        Bowman et al., "Generating Sentences from a Continuous Space", 2016, section
        3.1, https://arxiv.org/abs/1511.06349
    """
    _check_steps(half_steps)
    steepness = 10 / half_steps if steepness is None else steepness
    if not steepness > 0:
        raise ValueError(f"`steepness` must be positive, received {steepness!r}.")
    return lambda step: ops.sigmoid(steepness * (ops.cast(step, "float32") - half_steps))


def cyclical_annealing(steps, cycles=4, rise=0.5):
    """A weight that rises from 0 to 1 several times, and stays at 1 after the last.

        within a cycle of steps / cycles updates:  min(1, i / (rise cycle))

    Args:
        steps: Positive number of updates, of all cycles.
        cycles: Positive integer.
        rise: Float in (0, 1], the share of each cycle in which the weight rises.

    Returns:
        As `linear_annealing`.

    Raises:
        ValueError: If an argument is out of its range.

    Example:

    >>> weight = cyclical_annealing(400, cycles=4)
    >>> float(weight(25)), float(weight(75)), float(weight(100)), float(weight(500))
    (0.5, 1.0, 0.0, 1.0)

    Reference:
        Fu et al., "Cyclical Annealing Schedule: A Simple Approach to Mitigating KL
        Vanishing", 2019, equation 6, https://arxiv.org/abs/1903.10145
    """
    _check_steps(steps)
    if not isinstance(cycles, int) or cycles < 1:
        raise ValueError(f"`cycles` must be a positive integer, received {cycles!r}.")
    if not 0 < rise <= 1:
        raise ValueError(f"`rise` must be above 0 and at most 1, received {rise!r}.")
    cycle = steps / cycles

    def weight_at(step):
        step = ops.cast(step, "float32")
        weight = ops.minimum(ops.mod(step, cycle) / (rise * cycle), 1.0)
        return ops.where(step >= steps, 1.0, weight)

    return weight_at


def _check_steps(steps):
    if not steps > 0:
        raise ValueError(f"The number of updates must be positive, received {steps!r}.")


def _k_log_k(value):
    """The k > 1 with k log k = value, by Newton's method."""
    k = 1 + value
    for _ in range(50):
        k -= (k * math.log(k) - value) / (math.log(k) + 1)
    return k
