"""The task `translate`: learns to translate from pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.run import Run
from keras_seq.scoring import ALL_METRICS
from keras_seq.settings import BackboneSettings, SearchSettings, Settings
from keras_seq.settings.monitors import TEXT_MONITORS
from keras_seq.tasks.task import Task, make_model, rows_of_ids
from keras_seq.tasks.text_exporter import TextExporter
from keras_seq.text import PAIR, FeatureTokenizer, plain_sources, split_language

if TYPE_CHECKING:
    from keras_seq.evaluation.values import TestSet
    from keras_seq.inference.hypothesis import Hypothesis
    from keras_seq.tasks.task import TestResult
    from keras_seq.training.validator import Batches, Report

_MEANING = """\
`serving_default`, the signature used above: `text`, one string a row{features}. For each row:

* `translation`: the best translation found; empty for a blank text.
* `score`: its log-probability, normalized by its length as the search settings say. It ranks the
  translations of one text; it does not compare texts.
* `truncated`: true if the text was longer than {max_source_length} tokens and was cut there, or if
  the translation reached its own limit ({max_length} tokens, fewer for short texts).

"""

SEARCH_MEANING = """\
`n_best`, with `"signature_name": "n_best"` next to `"instances"` in REST or
`request.model_spec.signature_name = "n_best"` in gRPC: the same three, {n_best} for each row, best
first. If fewer were found, the rest is `""` with a score of -1e30.

`ids`, for clients that tokenize: `ids`, a row of token ids for each text, padded with 0 to
equal lengths. For each row {n_best} of `ids` (padded with 0), `length`, `score` and `truncated`.
With batching all requests must have one width: the server joins rows, but cannot pad them with 0.

The search keeps {beam_size} hypotheses."""

_FILES = ("source", "target", "pairs")


class Translation(Task):
    """Maps texts to texts; trained with cross-entropy on each target token."""

    name = "translate"
    families = ("transformer", "rnn", "transformer-hub")
    usage = "translate {} < input > output"
    data = (
        "columns",
        "concatenation",
        "temperature",
        *_FILES,
        *(f"valid_{name}" for name in _FILES),
    )
    training = ("loss", "teacher", "teacher_weight")
    roles = PAIR
    metrics = ALL_METRICS
    monitors = (*TEXT_MONITORS, "loss", "perplexity", "accuracy")
    compares_texts = True

    def model(
        self, settings: Settings, source_size: int, target_size: int, dtype: Any, **options: Any
    ) -> Any:
        from keras_seq.models import EnsembleSeq2Seq

        options["dtype"] = dtype
        if not isinstance(settings.model, BackboneSettings):
            options["share_embeddings"] = settings.tokenizer.joint

        def make(name: str | None = None) -> Any:
            return make_model(settings, source_size, target_size, name=name, **options)

        members = getattr(settings.model, "members", 1)
        return make() if members == 1 else EnsembleSeq2Seq.of(make, members)

    def objective(self, settings: Settings) -> Any:
        from keras_seq.training.sequence_objective import SequenceObjective

        return SequenceObjective(settings)

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Any:
        return TranslationEvaluation(run, model, resumed)

    def preview(self, run: Run, batch: Any, rows: int) -> list[str]:
        sources = run.source_tokenizer.decode(rows_of_ids(batch["source"][:rows]))
        targets = run.target_tokenizer.decode(rows_of_ids(batch["target_output"][:rows]))
        count, source = batch["source"].shape
        target = batch["target_output"].shape[1]
        lines = [f"first batch        {count} pairs, {source} source and {target} target steps"]
        for source, target in zip(sources, targets, strict=True):
            lines += [f"  source           {source}", f"  target           {target}"]
        return lines

    def evaluate(self, test: TestSet) -> TestResult:
        from keras_seq.evaluation.text_values import text_values
        from keras_seq.inference.hypothesis import best_texts
        from keras_seq.inference.translator import Translator

        search = test.search_settings.model_copy(update={"n_best": 1})
        translator = Translator.of_run(test.run, test.model, search)
        translations = translator.translate(test.sources)
        outputs = best_texts(translations)
        tokenize = test.tokenize or test.run.settings.score.tokenize
        values = text_values(outputs, test.references, test.metrics, tokenize, test.samples)
        num_truncated = sum(any(best.truncated for best in row[:1]) for row in translations)
        return values, tuple(outputs), num_truncated

    def baseline(self, test: TestSet) -> Any:
        from keras_seq.evaluation.text_values import text_values
        from keras_seq.evaluation.values import Baseline

        tokenize = test.tokenize or test.run.settings.score.tokenize
        sources = plain_sources(test.sources, test.run.source_tokenizer)
        values = text_values(sources, test.references, test.metrics, tokenize, None)
        return Baseline("copy of the source", values)

    def exporter(self, run: Run, settings: Settings) -> Any:
        return TranslationExporter(run, settings)


def validation_search(run: Run) -> SearchSettings:
    """Returns the search settings of the validations in a training."""
    size = run.settings.training.validation_beam_size
    # Validations are frequent, so they do not rerank.
    changes = {"beam_size": size, "n_best": 1, "batch_size": 64, "rerank": "none"}
    return run.settings.search.model_copy(update=changes)


class TranslationEvaluation:
    """Loss, accuracy and two metrics of the translated validation text; see `Evaluation`."""

    def __init__(self, run: Run, model: Any, resumed: str | None) -> None:
        from keras_seq.inference.translator import Translator
        from keras_seq.training.evaluation import make_evaluation
        from keras_seq.training.judging import judging_of

        self._sources, self._references = run.valid_lines()
        self._judging = judging_of(run.settings, self._references, resumed)
        self.monitor = self._judging.monitor
        self.tie_break = self._judging.tie_break
        self.reason = self._judging.reason
        self.notices = self._judging.notices()
        self._evaluate = make_evaluation(model)
        self._run, self._model = run, model
        self._translator = Translator.of_run(run, model, validation_search(run))
        self._extractor: Any = None

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        from keras_seq.evaluation.plugin_values import monitored_plugin_value, shown
        from keras_seq.evaluation.resampling import spread
        from keras_seq.inference.hypothesis import best_texts
        from keras_seq.training.validator import Report, Sample

        values = self._evaluate(batches)
        translations = self._translator.translate(self._sources)
        outputs = best_texts(translations)
        samples = spread(self._run.settings.training.sample_count, len(outputs))
        columns = {"source": self._sources, "reference": self._references, "model": outputs}
        scores = self._judging.scores(outputs, self._references)
        values |= {name: score.value for name, score in scores.items()}
        added = monitored_plugin_value(self.monitor, outputs, self._references)
        values |= added
        signature = next(iter(scores.values())).signature
        by_language = self._scores_by_language(outputs)
        values |= {
            f"{name}.{language}": score.value
            for language, own in by_language.items()
            for name, score in own.items()
        }
        return Report(
            values,
            f"loss {values['loss']:.3f}, perplexity {values['perplexity']:.2f}, token accuracy "
            f"{values['accuracy']:.3f}, {shown(added)}{_shown(scores)} {signature}"
            + "".join(f"; {language}: {_shown(own)}" for language, own in by_language.items()),
            [
                Sample(f"line {i + 1}", [(name, lines[i]) for name, lines in columns.items()])
                for i in samples
            ],
            {"attention": self._pictures(samples[:1], translations) if pictures else []},
            signature if self.monitor in scores else "",
            {"signature": signature},
            self._judging.contradiction(values),
        )

    def _scores_by_language(self, outputs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Returns the metrics of the lines of each target language."""
        languages = [split_language(source)[0] for source in self._sources]
        result = {}
        for name in self._run.languages:
            rows = [row for row, language in enumerate(languages) if language == name]
            if rows:
                pairs = zip(*((outputs[row], self._references[row]) for row in rows), strict=True)
                result[name] = self._judging.scores(*pairs)
        return result

    def _pictures(self, samples: list[int], translations: list[list[Hypothesis]]) -> list[bytes]:
        from keras_seq.analysis.attention import AttentionExtractor
        from keras_seq.callbacks.attention_snapshots import attention_picture

        if not hasattr(self._model, "with_attention"):
            return []
        if self._extractor is None:
            length = self._run.settings.data.max_source_length
            self._extractor = AttentionExtractor(self._model, self._run.source_tokenizer, length)
        attention = self._extractor(
            [self._sources[i] for i in samples], [translations[i][:1] for i in samples]
        )
        return [attention_picture(best.weights) for row in attention for best in row]


def _shown(scores: Mapping[str, Any]) -> str:
    return ", ".join(f"{score.name} = {score.value:.2f}" for score in scores.values())


class TranslationExporter(TextExporter):
    """Exporter of a model that translates a source text; see `Exporter`."""

    outputs: tuple[str, ...] = ("translation", "score", "truncated")
    verb = "translates"
    # True if outputs begin with the input.
    continues = False
    # Search settings that a client may replace, if the search is not part of the graph.
    _options: tuple[str, ...] = tuple(
        name for name in SearchSettings.model_fields if name not in ("forbidden", "prefix")
    )

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        from keras_seq.inference.translator import Translator

        return Translator.of_run(self._run, model, self._settings.search)(texts)

    def module(self, model: Any) -> Any:
        from keras_seq.serving.search_signatures import translation_signatures
        from keras_seq.serving.signature_module import SignatureModule

        functions = translation_signatures(
            model,
            self._run.source_tokenizer,
            self._run.target_tokenizer,
            self._settings.search,
            self.limit,
            self._characters,
        )
        return SignatureModule(model, functions)

    def onnx(self, model: Any) -> Any:
        from keras_seq.serving.model_graphs import GraphParts, search_graphs
        from keras_seq.serving.portable_model import search_options, search_settings

        run, search = self._run, self._settings.search
        return GraphParts(
            search_graphs(model, attention=search.coverage_penalty > 0),
            (run.source_tokenizer, run.target_tokenizer),
            {
                "max_length": self.limit,
                "search": search_settings(search, run.target_tokenizer),
                "options": search_options(*self._options),
                "n_best": search.n_best,
                "continues": self.continues,
            },
        )

    def litert(self, model: Any, longest: int) -> Any:
        from keras_seq.inference.search import make_search
        from keras_seq.serving.model_graphs import (
            GraphParts,
            generation_graph,
            with_fixed_shapes,
        )

        run, search = self._run, self._settings.search
        find = make_search(model, search, run.target_tokenizer)
        graph = generation_graph(find, continues=self.continues)
        # One more for the end token, which prompts lack.
        fixed = with_fixed_shapes(graph, longest + (not self.continues))
        return GraphParts(
            [("model", fixed)],
            (run.source_tokenizer, run.target_tokenizer),
            {"max_length": longest, "n_best": search.n_best, "continues": self.continues},
        )

    def decode(self, answers: list[Any]) -> list[str]:
        return self._run.target_tokenizer.decode(answers)

    def describe(self) -> str:
        search = self._settings.search
        tokenizer, features = self._run.source_tokenizer, ""
        if languages := self._run.languages:
            names = ", ".join(f"`{name}`" for name in languages)
            features = (
                f", and `target_language`, one of {names}; the translation is empty for any other"
            )
        if isinstance(tokenizer, FeatureTokenizer):
            separator = tokenizer.separator
            features = (
                f", and `features`, one string a row, with {separator!r} between two features"
            )
        meaning = _MEANING.format(
            max_source_length=self.limit, max_length=search.max_length, features=features
        )
        return meaning + searched(search)


def searched(search: Any) -> str:
    """Describes the signatures that all searches have."""
    return SEARCH_MEANING.format(n_best=search.n_best, beam_size=search.beam_size)


TASK = Translation()
