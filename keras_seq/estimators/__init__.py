"""Train, use, evaluate, save and export a model in Python, from data in memory or in files."""

from keras_seq.analysis.history import History
from keras_seq.estimators.classes import (
    Autoencoder,
    Classifier,
    Generator,
    Recognizer,
    Tagger,
    Translator,
    WakeWordDetector,
)
from keras_seq.estimators.estimator import Estimator

__all__ = [
    "Autoencoder",
    "Classifier",
    "Estimator",
    "Generator",
    "History",
    "Recognizer",
    "Tagger",
    "Translator",
    "WakeWordDetector",
]
