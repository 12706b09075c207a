"""The predictors of all tasks, with training."""

from __future__ import annotations

from collections.abc import Sequence

from keras_seq.analysis.pages import Page
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

    def show_attention(self, lines: Sequence[str]) -> Page:
        """Translates lines; returns a page of their attention weights, which a notebook shows.

        Blank lines are left out. Raises ValueError if no line has a translation, or for an
        ensemble.
        """
        from keras_seq.analysis.explanation import Explainer
        from keras_seq.analysis.search_pages import AttendedLine, attention_page

        explain = Explainer(self.run, self.model)
        translations = self.translate(lines)
        attentions = explain.best_attention(lines, translations, all_layers=True)
        rows = zip(lines, translations, attentions, strict=True)
        attended = [
            AttendedLine(number, line, hypotheses[0].text, attention)
            for number, (line, hypotheses, attention) in enumerate(rows, 1)
            if attention is not None
        ]
        if not attended:
            raise ValueError("no line has a translation, expected at least one")
        return attention_page(attended, explain, self.run.path.name)

    def show_beam(self, lines: Sequence[str]) -> Page:
        """Translates lines; returns a page of all hypotheses, which a notebook shows.

        Blank lines are left out. Raises SettingsError for sampling.
        """
        from keras_seq.analysis.beam_tree import BeamView
        from keras_seq.analysis.search_pages import beam_page

        view = BeamView(self)
        trees = [
            {"number": number, **view(line)} for number, line in enumerate(lines, 1) if line.strip()
        ]
        return beam_page(trees, self.search_settings, self.run.path.name)


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


# The class of each task.
BY_TASK = {
    str(one.task): one
    for one in (
        Translator,
        Classifier,
        Tagger,
        Generator,
        Autoencoder,
        Recognizer,
        WakeWordDetector,
    )
}
