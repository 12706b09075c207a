"""Rates that change in the course of a training, as functions of the update."""

import math

from keras import ops

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


def _k_log_k(value):
    """The k > 1 with k log k = value, by Newton's method."""
    k = 1 + value
    for _ in range(50):
        k -= (k * math.log(k) - value) / (math.log(k) + 1)
    return k
