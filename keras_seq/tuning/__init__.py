"""Searches settings, and measures what more data would bring."""

from keras_seq.tuning.outcome import Outcome
from keras_seq.tuning.training_process import Ending, train_in_process
from keras_seq.tuning.trial import Trial
from keras_seq.tuning.tuner import Tuning, TuningResult

__all__ = ["Ending", "Outcome", "Trial", "Tuning", "TuningResult", "train_in_process"]
