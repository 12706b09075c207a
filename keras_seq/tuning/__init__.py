"""Searches settings, and measures what more data would bring."""

from keras_seq.tuning.learning_curve import CurvePoint, CurveResult, measure_learning_curve
from keras_seq.tuning.outcome import Outcome
from keras_seq.tuning.power_law import PowerLaw, fit_power_law
from keras_seq.tuning.training_process import Ending, train_in_process
from keras_seq.tuning.trial import Trial
from keras_seq.tuning.tuner import Tuning, TuningResult

__all__ = [
    "CurvePoint",
    "CurveResult",
    "Ending",
    "Outcome",
    "PowerLaw",
    "Trial",
    "Tuning",
    "TuningResult",
    "fit_power_law",
    "measure_learning_curve",
    "train_in_process",
]
