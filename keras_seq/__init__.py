"""Sequence-to-sequence models with Keras 3: train your own, from text to text.

The public names load at their first use, so `import keras_seq` takes milliseconds and imports
Keras only if a name needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PACKAGES = (
    "analysis",
    "backend",
    "callbacks",
    "cluster",
    "data",
    "evaluation",
    "inference",
    "jobs",
    "layers",
    "losses",
    "metrics",
    "models",
    "preparation",
    "run",
    "runtime",
    "schedules",
    "scoring",
    "search",
    "serving",
    "settings",
    "storage",
    "tasks",
    "text",
    "training",
    "vectors",
)
# Where each public name is defined, and its name there.
_NAMES = {
    "Autoencoder": ("keras_seq.inference.autoencoder", "Autoencoder"),
    "Classifier": ("keras_seq.inference.classifier", "Classifier"),
    "Diagnosis": ("keras_seq.analysis.diagnosis.verdicts", "Diagnosis"),
    "Devices": ("keras_seq.runtime.devices", "Devices"),
    "Evaluation": ("keras_seq.evaluation", "Evaluation"),
    "Generator": ("keras_seq.inference.generator", "Generator"),
    "InputError": ("keras_seq.text", "InputError"),
    "LikelihoodScorer": ("keras_seq.inference.likelihood", "LikelihoodScorer"),
    "Recognizer": ("keras_seq.inference.recognizer", "Recognizer"),
    "Run": ("keras_seq.run", "Run"),
    "Settings": ("keras_seq.settings", "Settings"),
    "SettingsError": ("keras_seq.settings", "SettingsError"),
    "Tagger": ("keras_seq.inference.tagger", "Tagger"),
    "Translator": ("keras_seq.inference.translator", "Translator"),
    "diagnose": ("keras_seq.analysis.diagnosis.diagnosing", "diagnose"),
    "evaluate": ("keras_seq.evaluation.evaluating", "evaluate"),
    "export": ("keras_seq.serving.saved_model", "export_saved_model"),
    "load_settings": ("keras_seq.settings", "load_settings"),
    "score": ("keras_seq.scoring", "score"),
    "train": ("keras_seq.training", "train"),
    "translate": ("keras_seq.inference.translator", "translate"),
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
    "analysis",
    "backend",
    "callbacks",
    "cluster",
    "data",
    "diagnose",
    "evaluate",
    "evaluation",
    "export",
    "inference",
    "jobs",
    "layers",
    "load_settings",
    "losses",
    "metrics",
    "models",
    "preparation",
    "run",
    "runtime",
    "schedules",
    "score",
    "scoring",
    "search",
    "serving",
    "settings",
    "storage",
    "tasks",
    "text",
    "train",
    "training",
    "translate",
    "vectors",
]

if TYPE_CHECKING:
    from keras_seq import (
        analysis,
        backend,
        callbacks,
        cluster,
        data,
        evaluation,
        inference,
        jobs,
        layers,
        losses,
        metrics,
        models,
        preparation,
        run,
        runtime,
        schedules,
        scoring,
        search,
        serving,
        settings,
        storage,
        tasks,
        text,
        training,
        vectors,
    )
    from keras_seq.analysis.diagnosis.diagnosing import diagnose
    from keras_seq.analysis.diagnosis.result import Diagnosis
    from keras_seq.evaluation import Evaluation
    from keras_seq.evaluation.evaluating import evaluate
    from keras_seq.inference.autoencoder import Autoencoder
    from keras_seq.inference.classifier import Classifier
    from keras_seq.inference.generator import Generator
    from keras_seq.inference.likelihood import LikelihoodScorer
    from keras_seq.inference.recognizer import Recognizer
    from keras_seq.inference.tagger import Tagger
    from keras_seq.inference.translator import Translator, translate
    from keras_seq.run import Run
    from keras_seq.runtime.devices import Devices
    from keras_seq.scoring import score
    from keras_seq.serving.saved_model import export_saved_model as export
    from keras_seq.settings import Settings, SettingsError, load_settings
    from keras_seq.text import InputError
    from keras_seq.training import train


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"keras_seq.{name}")
    if name in _NAMES:
        module, attribute = _NAMES[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'keras_seq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
