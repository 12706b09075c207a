"""Small sequence models with Keras 3: trains them on your own data, evaluates and serves them.

The public names load at their first use, so `import keras_seq` takes milliseconds and imports
Keras only if a name needs it.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

# pyproject.toml takes the version from here.
__version__ = "0.1.0"

_PACKAGES = sorted(
    entry.name for entry in os.scandir(__path__[0]) if entry.is_dir() and entry.name[0] not in "._"
)
_PACKAGES.append("runtime")
# Where each public name is defined. A name after a colon is its name there.
_NAMES = {
    "Autoencoder": "estimators",
    "Classifier": "estimators",
    "Devices": "process.devices",
    "Diagnosis": "analysis.diagnosis.result",
    "Evaluation": "evaluation",
    "Generator": "estimators",
    "InputError": "text",
    "LikelihoodScorer": "inference.likelihood",
    "NoisyChannelTranslator": "inference.noisy_channel",
    "Recognizer": "estimators",
    "Run": "run",
    "Settings": "settings",
    "SettingsError": "settings",
    "Tagger": "estimators",
    "Translator": "estimators",
    "WakeWordDetector": "estimators",
    "diagnose": "analysis.diagnosis.diagnosing",
    "evaluate": "evaluation.evaluating",
    "export": "serving.saved_model:export_saved_model",
    "generate": "search",
    "load_settings": "settings",
    "push": "run.sharing",
    "register_callback": "plugins",
    "register_family": "plugins",
    "register_loss": "plugins",
    "register_metric": "plugins",
    "register_task": "plugins",
    "register_vocabulary": "plugins",
    "report": "analysis.reports.reporting",
    "score": "scoring",
    "train": "training",
    "translate": "inference.translator",
}
__all__ = ["__version__", *_PACKAGES, *_NAMES]

if TYPE_CHECKING:
    from keras_seq import analysis as analysis
    from keras_seq import backend as backend
    from keras_seq import callbacks as callbacks
    from keras_seq import cluster as cluster
    from keras_seq import data as data
    from keras_seq import estimators as estimators
    from keras_seq import evaluation as evaluation
    from keras_seq import inference as inference
    from keras_seq import jobs as jobs
    from keras_seq import layers as layers
    from keras_seq import losses as losses
    from keras_seq import metrics as metrics
    from keras_seq import models as models
    from keras_seq import plugins as plugins
    from keras_seq import preparation as preparation
    from keras_seq import pretrained as pretrained
    from keras_seq import process as process
    from keras_seq import run as run
    from keras_seq import schedules as schedules
    from keras_seq import scoring as scoring
    from keras_seq import search as search
    from keras_seq import serving as serving
    from keras_seq import settings as settings
    from keras_seq import storage as storage
    from keras_seq import tasks as tasks
    from keras_seq import text as text
    from keras_seq import training as training
    from keras_seq import tuning as tuning
    from keras_seq import vectors as vectors
    from keras_seq.analysis.diagnosis.diagnosing import diagnose as diagnose
    from keras_seq.analysis.diagnosis.result import Diagnosis as Diagnosis
    from keras_seq.analysis.reports.reporting import report as report
    from keras_seq.estimators import Autoencoder as Autoencoder
    from keras_seq.estimators import Classifier as Classifier
    from keras_seq.estimators import Generator as Generator
    from keras_seq.estimators import Recognizer as Recognizer
    from keras_seq.estimators import Tagger as Tagger
    from keras_seq.estimators import Translator as Translator
    from keras_seq.estimators import WakeWordDetector as WakeWordDetector
    from keras_seq.evaluation import Evaluation as Evaluation
    from keras_seq.evaluation.evaluating import evaluate as evaluate
    from keras_seq.inference.likelihood import LikelihoodScorer as LikelihoodScorer
    from keras_seq.inference.noisy_channel import (
        NoisyChannelTranslator as NoisyChannelTranslator,
    )
    from keras_seq.inference.translator import translate as translate
    from keras_seq.plugins import register_callback as register_callback
    from keras_seq.plugins import register_family as register_family
    from keras_seq.plugins import register_loss as register_loss
    from keras_seq.plugins import register_metric as register_metric
    from keras_seq.plugins import register_task as register_task
    from keras_seq.plugins import register_vocabulary as register_vocabulary
    from keras_seq.process.devices import Devices as Devices
    from keras_seq.run import Run as Run
    from keras_seq.run.sharing import push as push
    from keras_seq.scoring import score as score
    from keras_seq.search import generate as generate
    from keras_seq.serving.saved_model import export_saved_model
    from keras_seq.settings import Settings as Settings
    from keras_seq.settings import SettingsError as SettingsError
    from keras_seq.settings import load_settings as load_settings
    from keras_seq.text import InputError as InputError
    from keras_seq.training import train as train

    export = export_saved_model


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"keras_seq.{name}")
    if name in _NAMES:
        module, _, original = _NAMES[name].partition(":")
        return getattr(importlib.import_module(f"keras_seq.{module}"), original or name)
    raise AttributeError(f"module 'keras_seq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
