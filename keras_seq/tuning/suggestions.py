"""Suggests settings of trials with Optuna."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from keras_seq.text import InputError
from keras_seq.tuning.search_space import Dimension, Range, Value, Values

# Number of random suggestions before the sampler uses the scores.
_RANDOM = 4
# Suggestions that are invalid or repeat an earlier one, before the search ends.
_ATTEMPTS = 200


def require_optuna() -> Any:
    """Imports Optuna. Raises InputError if it is not installed."""
    try:
        import optuna
    except ImportError:
        raise InputError("tuning needs Optuna: python -m pip install 'keras-seq[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def suggest(
    space: Sequence[Dimension],
    earlier: Sequence[tuple[Values, float]],
    seed: int,
    is_valid: Callable[[Values], bool],
) -> dict[str, Value] | None:
    """Returns the values of the next trial; None if no new values are left.

    The same arguments give the same values, so an interrupted search can be resumed.

    Args:
        space: What is searched.
        earlier: The values of the earlier trials, and their scores. Lower scores are better;
            infinity for a trial that failed.
        seed: Random seed.
        is_valid: Function that tests if values fit together.

    Reference:
        Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NeurIPS 2011; Akiba et al.,
        "Optuna: A Next-generation Hyperparameter Optimization Framework", KDD 2019
    """
    known = [dict(values) for values, _ in earlier]
    optuna = require_optuna()
    distributions = {each.name: _distribution(optuna, each) for each in space}
    for attempt in range(_ATTEMPTS):
        sampler = optuna.samplers.TPESampler(
            seed=(seed + len(earlier) + 1000 * attempt) % 2**32, n_startup_trials=_RANDOM
        )
        study = optuna.create_study(sampler=sampler)
        for values, score in earlier:
            study.add_trial(_finished(optuna, values, score, distributions))
        params = study.ask(distributions).params
        values = {
            each.name: each.round(params[each.name])
            if isinstance(each, Range)
            else params[each.name]
            for each in space
        }
        if values not in known and is_valid(values):
            return values
    return None


def all_values(space: Sequence[Dimension], limit: int) -> list[dict[str, Value]] | None:
    """Returns all combinations of values; None if there are more than `limit`."""
    if math.prod(each.size for each in space) > limit:
        return None
    names = [each.name for each in space]
    values: list[Sequence[Value]] = [
        range(int(each.low), int(each.high) + 1) if isinstance(each, Range) else each.values
        for each in space
    ]
    return [dict(zip(names, each, strict=True)) for each in itertools.product(*values)]


def _distribution(optuna: Any, dimension: Dimension) -> Any:
    kinds = optuna.distributions
    if not isinstance(dimension, Range):
        return kinds.CategoricalDistribution(dimension.values)
    low, high, log = dimension.low, dimension.high, dimension.is_logarithmic
    if dimension.is_integer:
        return kinds.IntDistribution(int(low), int(high), log=log)
    return kinds.FloatDistribution(low, high, log=log)


def _finished(optuna: Any, values: Values, score: float, distributions: Any) -> Any:
    state = optuna.trial.TrialState
    if math.isfinite(score):
        return optuna.trial.create_trial(
            state=state.COMPLETE, params=dict(values), distributions=distributions, value=score
        )
    # The sampler ranks pruned trials without a value below all others.
    return optuna.trial.create_trial(
        state=state.PRUNED, params=dict(values), distributions=distributions
    )
