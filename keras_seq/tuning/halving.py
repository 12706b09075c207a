"""The schedule of successive halving."""

from __future__ import annotations

from collections.abc import Sequence

# After each round, a third of the trials continues.
REDUCTION = 3


def round_sizes(trials: int) -> list[int]:
    """Returns the number of trials in each round: a third continues, and the last round has one.

    Example:

    >>> round_sizes(9)
    [9, 3, 1]
    """
    sizes = [trials]
    while sizes[-1] > 1:
        sizes.append(max(1, sizes[-1] // REDUCTION))
    return sizes


def minutes_each(budget: float, used: float, rounds_left: int, trials: int) -> float:
    """Returns the further minutes of each trial of a round.

    The rounds share the rest of the budget equally, and so do the trials of a round. What a trial
    does not use, because it fails or reaches another limit, goes to the later rounds.

    Args:
        budget: Minutes of all rounds.
        used: Minutes of the earlier rounds.
        rounds_left: Number of rounds left, with this one.
        trials: Number of trials of the round.

    Returns:
        The minutes, at least 0.

    Example:

    >>> minutes_each(30, 0, 3, 9) * 9
    10.0

    Reference:
        Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
        Optimization", AISTATS 2016
    """
    return max(0.0, budget - used) / rounds_left / trials


def planned_minutes(budget: float, sizes: Sequence[int]) -> list[float]:
    """Returns the further minutes of each trial, by round, if each trial uses all of its minutes.

    Example:

    >>> planned_minutes(27, [9, 3, 1])
    [1.0, 3.0, 9.0]
    """
    return [minutes_each(budget, 0.0, len(sizes), size) for size in sizes]
