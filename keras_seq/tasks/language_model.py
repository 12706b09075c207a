"""The task `language-model`: generates lines of text, without a source."""

from __future__ import annotations

import math
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

# Rows in which the validation text is read by a model that carries its state.
_ROWS = 16

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
    file = "text"
    data = ("text", "valid_text", "packed")
    training = ("carry_state", "loss", "teacher", "teacher_weight")
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
    metrics = ("perplexity", "bits_per_character")

    def objective(self, settings: Settings) -> Any:
        from keras_seq.training.sequence_objective import SequenceObjective

        return SequenceObjective(settings)

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Any:
        return LanguageModelEvaluation(run, model)

    def evaluate(self, test: TestSet) -> TestResult:
        from keras_seq.inference.likelihood import LikelihoodScorer
        from keras_seq.inference.stream_likelihood import text_likelihoods

        run = test.run
        scorer = LikelihoodScorer(test.model, run.source_tokenizer, run.target_tokenizer)
        likelihoods = text_likelihoods(scorer, test.references, run.settings)
        return self._values(test, likelihoods, test.samples), None, 0

    def baseline(self, test: TestSet) -> Any:
        from keras_seq.evaluation.baselines import unigram_likelihoods
        from keras_seq.evaluation.values import Baseline

        likelihoods = unigram_likelihoods(test.run, test.references)
        return Baseline("frequency of each token", self._values(test, likelihoods, None))

    def _values(self, test: TestSet, likelihoods: Any, samples: int | None) -> dict[str, Any]:
        from keras_seq.evaluation.text_values import bits_per_character_value, perplexity_value

        values = {
            "perplexity": perplexity_value(likelihoods, samples),
            "bits_per_character": bits_per_character_value(likelihoods, test.references, samples),
        }
        return {name: values[name] for name in test.metrics}

    def exporter(self, run: Run, settings: Settings) -> Any:
        return GenerationExporter(run, settings)


class LanguageModelEvaluation(PlainEvaluation):
    """Perplexity of the validation text, and texts that the model generates; see `Evaluation`."""

    def __init__(self, run: Run, model: Any) -> None:
        from keras_seq.inference.generator import Generator
        from keras_seq.training.carried_states import make_carried_evaluation
        from keras_seq.training.evaluation import make_evaluation

        super().__init__(run, "perplexity")
        self._run = run
        self._carries = run.settings.training.carry_state
        make = make_carried_evaluation if self._carries else make_evaluation
        self._evaluate = make(model)
        self._tokens_per_character = tokens_per_character(run)
        self._generator = None
        if count := run.settings.training.sample_count:
            search = run.settings.search
            beam = max(search.beam_size, count)
            search = search.model_copy(update={"n_best": count, "beam_size": beam, "batch_size": 1})
            self._generator = Generator(model, run.target_tokenizer, search)

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        from keras_seq.training.validator import Report, Sample

        values = self._evaluate(self._contiguous() if self._carries else batches)
        texts = self._generator.generate([""])[0] if self._generator else []
        shown = (
            f"loss {values['loss']:.3f}, perplexity {values['perplexity']:.2f}, token accuracy "
            f"{values['accuracy']:.3f}"
        )
        if self._tokens_per_character:
            bits = values["loss"] / math.log(2) * self._tokens_per_character
            shown += f", bits per character {bits:.3f}"
        return Report(
            values,
            shown,
            [Sample(f"text {n}", [("", text.text)]) for n, text in enumerate(texts, 1)],
        )

    def _contiguous(self) -> Batches:
        """Returns the validation text in few rows, each of which has almost all its context."""
        from keras_seq.data import TokenCorpus, contiguous_batches

        corpus = TokenCorpus.open(self._run.valid_directory)
        return contiguous_batches(corpus, _ROWS, self._run.settings.data.max_target_length)


def tokens_per_character(run: Run) -> float | None:
    """Returns the mean number of tokens of a character of the validation text.

    Line ends are characters. None if lines of the validation text were dropped.
    """
    from keras_seq.data import TokenCorpus

    corpus = TokenCorpus.open(run.valid_directory)
    lines = run.valid_lines()[1]
    tokens = int(corpus.target_lengths.sum())
    if not corpus.is_packed:
        # Each line has an end token, which the corpus leaves out.
        tokens += len(corpus)
        if len(corpus) != len(lines):
            return None
    return tokens / sum(len(line) + 1 for line in lines)


class GenerationExporter(TranslationExporter):
    """Exporter of a model that continues a prompt; see `Exporter`."""

    outputs: tuple[str, ...] = ("text", "score", "truncated")
    verb = "writes"
    continues = True

    def __init__(self, run: Run, settings: Settings) -> None:
        super().__init__(run, settings)
        self.limit = settings.search.max_length

    def inputs(self) -> list[str]:
        """Returns the first two words of each validation line, as prompts.

        In text without spaces, a word may be too long for a prompt. It is shortened.
        """
        if not self._run.has_valid_lines:
            return []
        return [self._prompt(" ".join(line.split()[:2])) for line in self._run.valid_lines()[1]]

    def _prompt(self, text: str) -> str:
        while len(self._run.target_tokenizer.encode([text])[0]) >= self.limit:
            text = text[: len(text) // 2]
        return text

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        from keras_seq.inference.generator import Generator

        return Generator(model, self._run.target_tokenizer, self._settings.search)(texts)

    def longest_input(self, max_input: float | None) -> int:
        # Leaves room for a token after the prompt.
        return min(super().longest_input(max_input), self.limit - 1)

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
