"""Schedules of the learning rate and of other rates and weights during training."""

from keras_seq.schedules.learning_rates import (
    CosineCycles,
    InverseSquareRoot,
    cycle_ends,
    noam,
    warmup_cosine,
)
from keras_seq.schedules.rates import (
    cyclical_annealing,
    linear_annealing,
    logistic_annealing,
    scheduled_sampling_rate,
)

__all__ = [
    "CosineCycles",
    "InverseSquareRoot",
    "cycle_ends",
    "cyclical_annealing",
    "linear_annealing",
    "logistic_annealing",
    "noam",
    "scheduled_sampling_rate",
    "warmup_cosine",
]
