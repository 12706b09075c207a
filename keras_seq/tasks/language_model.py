"""The task `language-model`: generates lines of text, without a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.tasks.task import PlainEvaluation, Task
from keras_seq.tasks.translation import TranslationExporter, searched

if TYPE_CHECKING:
    from keras_seq.evaluation.values import TestSet
    from keras_seq.tasks.task import TestResult
    from keras_seq.training.validator import Batches, Report

_MEANING = """\
`serving_default`, the signature used above: `text`, one prompt a row, empty to begin with nothing.
For each row:

* `text`: the prompt and what follows it. The same prompt gets the same text each time: samples
  depend on the seed of the export.
* `score`: its log-probability, normalized by its length as the search settings say.
* `truncated`: true if the prompt fills the limit of {max_length} tokens and was cut there, or if
  the text reached that limit before it ended.

"""


class LanguageModel(Task):
    """Generates text; trained with cross-entropy on each token."""

    name = "language-model"
    families = ("lm-transformer", "lm-rnn")
    usage = "generate {} --n-best 5"
    data = ("text", "valid_text", "packed")
    without = {
        key: "there is no source"
        for key in (
            "tokenizer.joint",
            "training.source_word_dropout",
            "training.source_embeddings",
            "training.guided_alignment",
            "data.alignments",
            "search.coverage_penalty",
        )
    } | {"score.tokenize": "no text is scored"}
    metrics = ("perplexity",)

    def objective(self, settings: Settings) -> Any:
        from keras_seq.training.sequence_objective import SequenceObjective

        return SequenceObjective(settings)

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Any:
        return LanguageModelEvaluation(run, model)

    def evaluate(self, test: TestSet) -> TestResult:
        from keras_seq.evaluation.text_values import perplexity_value
        from keras_seq.inference.likelihood import LikelihoodScorer

        scorer = LikelihoodScorer(test.model, test.run.source_tokenizer, test.run.target_tokenizer)
        likelihoods = scorer(test.sources, test.references)
        return {"perplexity": perplexity_value(likelihoods, test.samples)}, None, 0

    def baseline(self, test: TestSet) -> Any:
        from keras_seq.evaluation.baselines import unigram_perplexity
        from keras_seq.evaluation.values import Baseline

        value = unigram_perplexity(test.run, test.references)
        return Baseline("frequency of each token", {"perplexity": value})

    def exporter(self, run: Run, settings: Settings) -> Any:
        return GenerationExporter(run, settings)


class LanguageModelEvaluation(PlainEvaluation):
    """Perplexity of the validation text, and texts that the model generates; see `Evaluation`."""

    def __init__(self, run: Run, model: Any) -> None:
        from keras_seq.inference.generator import Generator
        from keras_seq.training.evaluation import make_evaluation

        super().__init__(run, "perplexity")
        self._evaluate = make_evaluation(model)
        self._generator = None
        if count := run.settings.training.sample_count:
            search = run.settings.search
            beam = max(search.beam_size, count)
            search = search.model_copy(update={"n_best": count, "beam_size": beam, "batch_size": 1})
            self._generator = Generator(model, run.target_tokenizer, search)

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        from keras_seq.training.validator import Report, Sample

        values = self._evaluate(batches)
        texts = self._generator.generate([""])[0] if self._generator else []
        return Report(
            values,
            f"loss {values['loss']:.3f}, perplexity {values['perplexity']:.2f}, token accuracy "
            f"{values['accuracy']:.3f}",
            [Sample(f"text {n}", [("", text.text)]) for n, text in enumerate(texts, 1)],
        )


class GenerationExporter(TranslationExporter):
    """Exporter of a model that continues a prompt; see `Exporter`."""

    outputs: tuple[str, ...] = ("text", "score", "truncated")
    verb = "writes"

    def __init__(self, run: Run, settings: Settings) -> None:
        super().__init__(run, settings)
        self.limit = settings.search.max_length

    def inputs(self) -> list[str]:
        """Returns the first two words of each validation line, as prompts."""
        return [" ".join(line.split()[:2]) for line in self._run.valid_lines()[1]]

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        from keras_seq.inference.generator import Generator

        return Generator(model, self._run.target_tokenizer, self._settings.search)(texts)

    def module(self, model: Any) -> Any:
        from keras_seq.serving.search_signatures import generation_signatures
        from keras_seq.serving.signature_module import SignatureModule

        tokenizer, search = self._run.target_tokenizer, self._settings.search
        functions = generation_signatures(model, tokenizer, search, self._characters)
        return SignatureModule(model, functions)

    def describe(self) -> str:
        search = self._settings.search
        return _MEANING.format(max_length=search.max_length) + searched(search)


TASK = LanguageModel()
