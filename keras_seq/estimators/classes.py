"""The predictors of all tasks, with training."""

from __future__ import annotations

from keras_seq.estimators.estimator import Estimator
from keras_seq.inference import (
    autoencoder,
    classifier,
    generator,
    recognizer,
    tagger,
    translator,
    wake_words,
)


class Translator(Estimator, translator.Translator):
    __doc__ = translator.Translator.__doc__


class Classifier(Estimator, classifier.Classifier):
    __doc__ = classifier.Classifier.__doc__


class Tagger(Estimator, tagger.Tagger):
    __doc__ = tagger.Tagger.__doc__


class Generator(Estimator, generator.Generator):
    __doc__ = generator.Generator.__doc__


class Autoencoder(Estimator, autoencoder.Autoencoder):
    __doc__ = autoencoder.Autoencoder.__doc__


class Recognizer(Estimator, recognizer.Recognizer):
    __doc__ = recognizer.Recognizer.__doc__


class WakeWordDetector(Estimator, wake_words.WakeWordDetector):
    __doc__ = wake_words.WakeWordDetector.__doc__
