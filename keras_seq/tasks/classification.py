"""The task `classify`: one label for each text."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.tasks.labels import (
    CHARACTERS_MEANING,
    LabelEvaluation,
    LabelExporter,
    LabelTask,
)
from keras_seq.tasks.task import Read
from keras_seq.text import LABELED, Tokenizer

if TYPE_CHECKING:
    from keras_seq.evaluation.values import TestSet
    from keras_seq.tasks.task import TestResult

_MEANING = """\
`serving_default`, the signature used above: `text`, one string a row. For each row:

* `label`: the most probable label.
* `probability`: its probability.
* `truncated`: true if the text was longer than {limit} tokens; the rest was not read.

`ranked`, with `"signature_name": "ranked"` next to `"instances"` in REST or
`request.model_spec.signature_name = "ranked"` in gRPC: `label` and `probability` of all {count}
labels, most probable first.

`ids`, for clients that tokenize: `ids`, a row of token ids for each text, padded with 0 to
equal lengths.{characters} For each row `label` and `probability`. With batching all requests must
have one width: the server joins rows, but cannot pad them with 0."""


class Classification(LabelTask):
    """Gives each text a label; trained with cross-entropy of the label."""

    name = "classify"
    families = (
        "classifier-cnn",
        "classifier-rnn",
        "classifier-bag",
        "classifier-transformer",
        "classifier-hub",
    )
    usage = "classify {} < input > output"
    data = (*LabelTask.data, "class_weights")
    roles = LABELED
    metrics = ("accuracy", "macro_f1", "calibration_error")
    monitors = ("loss", "accuracy", "macro_f1")

    def encoder(self, settings: Settings, source: Tokenizer, target: Any, read: Read) -> Any:
        from keras_seq.preparation.label_encoding import LabelEncoder, balanced_weights

        data = settings.data
        weights = balanced_weights(read()) if data.class_weights == "balanced" else None
        reads = settings.model.reads_characters
        return LabelEncoder(source, target, data.max_source_length, weights, reads)

    def model(
        self, settings: Settings, source_size: int, target_size: int, dtype: Any, **options: Any
    ) -> Any:
        from keras_seq.models import EnsembleClassifier

        def make(name: str | None = None) -> Any:
            return super(Classification, self).model(
                settings, source_size, target_size, dtype, name=name
            )

        members = getattr(settings.model, "members", 1)
        return make() if members == 1 else EnsembleClassifier.of(make, members)

    def objective(self, settings: Settings) -> Any:
        from keras_seq.training.label_objectives import ClassificationObjective

        return ClassificationObjective(settings)

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Any:
        from keras_seq.inference.classifier import Classifier
        from keras_seq.training.label_objectives import make_label_loss

        classifier = Classifier.of_run(run, model)

        def predict(
            texts: Sequence[str], references: Sequence[str]
        ) -> tuple[list[str], dict[str, float]]:
            log_probabilities, _ = classifier.log_probabilities(texts)
            answers = [run.labels.names[i] for i in log_probabilities.argmax(axis=1)]
            scores = _scores(references, answers)
            temperature = _fit_temperature(run, log_probabilities, references)
            return answers, scores | {"temperature": temperature}

        loss = make_label_loss(run.settings, model, train_model)
        return LabelEvaluation(run, loss, predict, "macro_f1")

    def evaluate(self, test: TestSet) -> TestResult:
        from keras_seq.evaluation.label_values import calibration_value, label_values
        from keras_seq.inference.classifier import Classifier

        classifier = Classifier.of_run(test.run, test.model, test.search_settings)
        results = classifier.classify(test.sources)
        labels = tuple(result.label for result in results)
        names = [name for name in test.metrics if name != "calibration_error"]
        expected, predicted = (
            [[label] for label in column] for column in (test.references, labels)
        )
        values = dict(label_values(expected, predicted, names, test.samples))
        if "calibration_error" in test.metrics:
            values["calibration_error"] = calibration_value(
                [result.probability for result in results],
                [
                    label == reference
                    for label, reference in zip(labels, test.references, strict=True)
                ],
                test.samples,
            )
        ordered = {name: values[name] for name in test.metrics}
        return ordered, labels, sum(result.truncated for result in results)

    def exporter(self, run: Run, settings: Settings) -> Any:
        return ClassificationExporter(self, run, settings)


def _scores(references: Sequence[str], answers: Sequence[str]) -> dict[str, float]:
    from keras_seq.scoring import label_scores

    scores = label_scores(references, answers)
    return {"accuracy": scores.accuracy, "macro_f1": scores.macro_f1}


def _fit_temperature(run: Run, log_probabilities: Any, references: Sequence[str]) -> float:
    from keras_seq.inference.calibration import fit_temperature

    numbers = {name: number for number, name in enumerate(run.labels.names)}
    # The validation text may have labels that are not in the training text.
    return fit_temperature(log_probabilities, [numbers.get(label, -1) for label in references])


class ClassificationExporter(LabelExporter):
    """Exporter of a model that returns the label of a text; see `Exporter`."""

    outputs = ("label", "probability", "truncated")
    verb = "labels"

    def module(self, model: Any) -> Any:
        from keras_seq.inference.classifier import temperature_of
        from keras_seq.serving.label_signatures import label_signatures

        temperature = temperature_of(self._run)
        return self._module(model, functools.partial(label_signatures, temperature=temperature))

    def graph(self, model: Any) -> Any:
        from keras_seq.inference.classifier import temperature_of
        from keras_seq.serving.model_graphs import label_graph

        return label_graph(model, temperature_of(self._run))

    def describe(self) -> str:
        characters = f" {CHARACTERS_MEANING}" if self._reads_characters else ""
        count = len(self._run.labels.names)
        return _MEANING.format(limit=self.limit, count=count, characters=characters)


TASK = Classification()
