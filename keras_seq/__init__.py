"""Sequence-to-sequence models with Keras 3: train your own, from text to text.

The public names load when first used, so `import keras_seq` costs
milliseconds and Keras is imported only by what needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = (
    "data",
    "layers",
    "metrics",
    "models",
    "scoring",
    "search",
    "text",
    "training",
    "vectors",
)
_NAMES = {
    "Autoencoder": "keras_seq.autoencoder",
    "Classifier": "keras_seq.classifier",
    "Diagnosis": "keras_seq.diagnosis.verdicts",
    "Devices": "keras_seq.devices",
    "Evaluation": "keras_seq.evaluation.values",
    "Generator": "keras_seq.generator",
    "InputError": "keras_seq.text",
    "LikelihoodScorer": "keras_seq.likelihood",
    "Recognizer": "keras_seq.recognizer",
    "Run": "keras_seq.run",
    "Settings": "keras_seq.settings",
    "SettingsError": "keras_seq.settings",
    "Tagger": "keras_seq.tagger",
    "Translator": "keras_seq.translator",
    "diagnose": "keras_seq.diagnosis.diagnosing",
    "evaluate": "keras_seq.evaluation.evaluating",
    "load_settings": "keras_seq.settings",
    "train": "keras_seq.training",
}

__all__ = [
    "Autoencoder",
    "Classifier",
    "Devices",
    "Diagnosis",
    "Evaluation",
    "Generator",
    "InputError",
    "LikelihoodScorer",
    "Recognizer",
    "Run",
    "Settings",
    "SettingsError",
    "Tagger",
    "Translator",
    "__version__",
    "data",
    "diagnose",
    "evaluate",
    "layers",
    "load_settings",
    "metrics",
    "models",
    "scoring",
    "search",
    "text",
    "train",
    "training",
    "vectors",
]

if TYPE_CHECKING:
    from keras_seq import data, layers, metrics, models, scoring, search, text, training, vectors
    from keras_seq.autoencoder import Autoencoder
    from keras_seq.classifier import Classifier
    from keras_seq.devices import Devices
    from keras_seq.diagnosis.diagnosing import diagnose
    from keras_seq.diagnosis.verdicts import Diagnosis
    from keras_seq.evaluation.evaluating import evaluate
    from keras_seq.evaluation.values import Evaluation
    from keras_seq.generator import Generator
    from keras_seq.likelihood import LikelihoodScorer
    from keras_seq.recognizer import Recognizer
    from keras_seq.run import Run
    from keras_seq.settings import Settings, SettingsError, load_settings
    from keras_seq.tagger import Tagger
    from keras_seq.text import InputError
    from keras_seq.training import train
    from keras_seq.translator import Translator


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"keras_seq.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'keras_seq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
