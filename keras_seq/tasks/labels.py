"""Base classes of the tasks classification and tagging, whose targets are labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.settings.search import SearchSettings
from keras_seq.tasks.task import PlainEvaluation, Task, make_model, rows_of_ids
from keras_seq.tasks.text_exporter import TextExporter
from keras_seq.text import (
    FIRST_LABEL,
    WORD_CHARACTERS,
    InputError,
    WordTokens,
    shown_word,
    word_tokens,
)

if TYPE_CHECKING:
    from keras_seq.evaluation.values import TestSet
    from keras_seq.tasks.task import TestResult
    from keras_seq.training.validator import Batches, Report


CHARACTERS_MEANING = """\
And `characters`, because the model reads them: for each id, which is that of a whole word or 1, 16
numbers: the code points of the first 8 and of the last 8 characters of the word, with 0 after and
before those of a shorter word."""


def characters_of(rows: Sequence[WordTokens]) -> list[list[list[int]]]:
    """Returns a list of code points for each token of each row."""
    size = WORD_CHARACTERS
    return [
        [points[i : i + size] for i in range(0, len(points), size)]
        for points in (row.characters() for row in rows)
    ]


class LabelTask(Task):
    """Maps texts to labels from a closed set."""

    file = "labeled"
    data: tuple[str, ...] = ("columns", "labeled", "valid_labeled")
    without = {
        key: "no text is written"
        for key in (
            "tokenizer.joint",
            "training.word_dropout",
            "training.subword_alpha",
            "training.scheduled_sampling",
            "training.guided_alignment",
            "training.target_embeddings",
            # The vector of a new label cannot be built from vectors of old labels.
            "training.from_run_vocabulary",
            "training.validation_beam_size",
            "data.alignments",
            "score.tokenize",
            *(f"search.{key}" for key in SearchSettings.model_fields if key != "batch_size"),
        )
    }
    training = ("loss",)
    has_labels = True
    compares_texts = True
    metrics: tuple[str, ...] = ("accuracy", "macro_f1")

    def max_target_length(self, settings: Settings) -> int:
        return self.max_source_length(settings)

    def model(
        self, settings: Settings, source_size: int, target_size: int, dtype: Any, **options: Any
    ) -> Any:
        return make_model(settings, source_size, target_size - FIRST_LABEL, dtype=dtype, **options)

    def preview(self, run: Run, batch: Any, rows: int) -> list[str]:
        if "features" in batch:
            # Unknown words have no text, but characters.
            texts = [
                " ".join(filter(None, map(shown_word, words)))
                for words in batch["features"][:rows].tolist()
            ]
        else:
            texts = run.source_tokenizer.decode(rows_of_ids(batch["source"][:rows]))
        count, steps = batch["source"].shape
        lines = [f"first batch        {count} rows, {steps} steps"]
        for text, labels in zip(texts, batch["target_output"][:rows], strict=True):
            names = " ".join(name for name in map(run.labels.name, labels) if name)
            lines += [f"  text             {text}", f"  label            {names}"]
        return lines

    def predict(
        self, run: Run, model: Any, texts: Sequence[str], search: SearchSettings | None = None
    ) -> tuple[tuple[str, ...], int]:
        """Returns the label of each text (or its tags), and the number of truncated texts."""
        from keras_seq.inference.classifier import Classifier

        results = Classifier.of_run(run, model, search).classify(texts)
        labels = tuple(result.label for result in results)
        return labels, sum(result.truncated for result in results)

    def split(self, line: str) -> list[str]:
        """Returns the labels of one line."""
        return [line]

    def evaluate(self, test: TestSet) -> TestResult:
        from keras_seq.evaluation.label_values import label_values

        outputs, num_truncated = self.predict(
            test.run, test.model, test.sources, test.search_settings
        )
        expected = [self.split(line) for line in test.references]
        predicted = [self.split(line) for line in outputs]
        if not any(expected):
            raise InputError("no words with tags, there is nothing to evaluate")
        values = label_values(expected, predicted, test.metrics, test.samples)
        return values, outputs, num_truncated

    def baseline_labels(self, test: TestSet) -> tuple[str, list[list[str]]]:
        """Returns a description and the labels of each line that need no model."""
        from keras_seq.evaluation.baselines import most_frequent_label

        return "most frequent label", [[most_frequent_label(test.run)]] * len(test.sources)

    def baseline(self, test: TestSet) -> Any:
        from keras_seq.evaluation.label_values import label_values
        from keras_seq.evaluation.values import Baseline

        name, predicted = self.baseline_labels(test)
        expected = [self.split(line) for line in test.references]
        names = [name for name in test.metrics if name != "calibration_error"]
        return Baseline(name, label_values(expected, predicted, names))


class LabelEvaluation(PlainEvaluation):
    """Loss, accuracy and F1 on the validation text; see `Evaluation`.

    `predict` maps texts and references to lines of labels, and to values by name.
    """

    def __init__(
        self,
        run: Run,
        loss: Callable[[Batches], float],
        predict: Callable[[Sequence[str], Sequence[str]], tuple[list[str], dict[str, float]]],
        monitor: str,
    ) -> None:
        super().__init__(run, monitor)
        self._sample_count = run.settings.training.sample_count
        self._texts, self._references = run.valid_lines()
        self._loss, self._predict = loss, predict

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        from keras_seq.evaluation.plugin_values import monitored_plugin_value
        from keras_seq.evaluation.resampling import spread
        from keras_seq.training.validator import Report, Sample

        answers, scores = self._predict(self._texts, self._references)
        values = {"loss": self._loss(batches)} | scores
        values |= monitored_plugin_value(self.monitor, answers, self._references)
        summary = ", ".join(
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in values.items()
        )
        columns = {"text": self._texts, "reference": self._references, "model": answers}
        samples = [
            Sample(f"line {i + 1}", [(name, lines[i]) for name, lines in columns.items()])
            for i in spread(self._sample_count, len(answers))
        ]
        return Report(values, summary, samples)


class LabelExporter(TextExporter):
    """Base class of exporters of models that return labels; see `Exporter`."""

    outputs: tuple[str, ...]

    def __init__(self, task: LabelTask, run: Run, settings: Settings) -> None:
        super().__init__(run, settings)
        self._task = task
        self._reads_characters = run.settings.model.reads_characters

    def _words(self, texts: Sequence[str]) -> list[WordTokens]:
        tokenizer = self._run.source_tokenizer
        return word_tokens(tokenizer, texts, whole_words=self._reads_characters)

    def encode(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        if not self._reads_characters:
            return super().encode(texts)
        rows = self._words(texts)
        return {"ids": [row.ids for row in rows], "characters": characters_of(rows)}

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        return list(self._task.predict(self._run, model, texts)[0])

    def decode(self, answers: list[Any]) -> list[str]:
        return list(answers)

    def _module(self, model: Any, signatures: Callable[..., dict[str, Any]]) -> Any:
        from keras_seq.serving.signature_module import SignatureModule

        run = self._run
        functions = signatures(
            model, run.source_tokenizer, run.labels, self.limit, self._characters
        )
        return SignatureModule(model, functions)

    def graph(self, model: Any) -> Any:
        """Returns the graph of the model, for the exports to ONNX and LiteRT."""
        raise InputError(
            f"{self._run.path}: the task {self._task.name!r} has no export to ONNX or LiteRT: its "
            f"{type(self).__name__} lacks a method `graph`"
        )

    def onnx(self, model: Any) -> Any:
        return self._parts(self.graph(model), self.limit)

    def litert(self, model: Any, longest: int) -> Any:
        from keras_seq.serving.model_graphs import with_fixed_shapes

        # One more for the end token.
        return self._parts(with_fixed_shapes(self.graph(model), longest + 1), longest)

    def _parts(self, graph: Any, longest: int) -> Any:
        from keras_seq.serving.model_graphs import GraphParts

        run = self._run
        settings = {
            "max_length": longest,
            "labels": list(run.labels.names),
            "reads_characters": self._reads_characters,
        }
        return GraphParts([("model", graph)], [run.source_tokenizer], settings)
