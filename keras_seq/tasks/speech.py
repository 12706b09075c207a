"""The task `speech`: recognizes the text of recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.settings.speech_models import AttentionRecognizerSettings
from keras_seq.tasks.sounds import SoundExporter, SoundTask, refused_settings, sample_rate
from keras_seq.tasks.task import PlainEvaluation, make_model
from keras_seq.text import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from keras_seq.evaluation.values import TestSet
    from keras_seq.tasks.task import Read, TestResult
    from keras_seq.training.validator import Batches, Report


class Speech(SoundTask):
    """Maps recordings to texts; trained by CTC, with attention, or both."""

    name = "speech"
    families = ("speech-ctc", "speech-attention")
    usage = "transcribe {} sound.wav"
    without = refused_settings(
        "beam_size", "n_best", "batch_size", "max_length", "max_length_ratio"
    )
    metrics = ("wer", "cer", "exact")
    compares_texts = True
    monitors = ("wer", "cer", "exact", "loss")

    def encoder(self, settings: Settings, source: Tokenizer, target: Any, read: Read) -> Any:
        from keras_seq.preparation.sound_encoding import SoundEncoder, recording_folders

        data, rate = settings.data, sample_rate(settings)
        folders = recording_folders(settings)
        return SoundEncoder(target, folders, rate, data.max_seconds, data.max_target_length)

    def model(self, settings: Settings, source_size: int, target_size: int, dtype: Any) -> Any:
        from keras_seq.layers import LogMelSpectrogram, RandomSpeed, SpecAugment

        section: Any = settings.model
        features = LogMelSpectrogram(
            sample_rate(settings), **section.feature_arguments(), dtype=dtype, name="features"
        )
        augmentation = SpecAugment(
            **section.augmentation_arguments(), dtype=dtype, name="augmentation"
        )
        layers = {"features": features, "augmentation": augmentation}
        if section.speed_change:
            layers["speed"] = RandomSpeed(section.speed_change, dtype=dtype, name="speed")
        return make_model(settings, target_size, **layers, dtype=dtype)

    def objective(self, settings: Settings) -> Any:
        from keras_seq.training.speech_objective import AttentionObjective, CTCObjective

        attends = isinstance(settings.model, AttentionRecognizerSettings)
        return AttentionObjective(settings) if attends else CTCObjective(settings)

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Any:
        return SpeechEvaluation(run, model)

    def export(self, run: Run, base: Any, settings: Settings, **options: Any) -> Path:
        from keras_seq.serving.recognizer_export import export_recognizer_run

        return export_recognizer_run(run, base, settings, **options)

    def exporter(self, run: Run, settings: Settings) -> Any:
        return SpeechExporter(run, settings)

    def evaluate(self, test: TestSet) -> TestResult:
        from keras_seq.evaluation.text_values import text_values
        from keras_seq.inference.recognizer import Recognizer

        search = test.search_settings.model_copy(update={"n_best": 1})
        recognizer = Recognizer.of_run(test.run, test.model, search)
        outputs = [texts[0].text for texts in recognizer.recognize_files(test.sources)]
        values = text_values(outputs, test.references, test.metrics, "auto", test.samples)
        return values, tuple(outputs), 0

    def baseline(self, test: TestSet) -> Any:
        from keras_seq.evaluation.baselines import most_frequent_text
        from keras_seq.evaluation.text_values import text_values
        from keras_seq.evaluation.values import Baseline

        outputs = [most_frequent_text(test.run)] * len(test.references)
        values = text_values(outputs, test.references, test.metrics, "auto", None)
        return Baseline("most frequent text", values)


class SpeechExporter(SoundExporter):
    """Exporter of a recognizer of speech; see `Exporter`."""

    verb = "transcribes"

    def expected(self, model: Any, recordings: Sequence[Any]) -> list[str]:
        from keras_seq.inference.recognizer import Recognizer

        return Recognizer.of_run(self._run, model, self._settings.search)(recordings)

    def onnx(self, model: Any) -> Any:
        from keras_seq.inference.sound_search import is_attentional
        from keras_seq.serving.model_graphs import GraphParts, search_graphs
        from keras_seq.serving.portable_model import search_options, search_settings

        search, tokenizer = self._settings.search, self._run.target_tokenizer
        settings: dict[str, Any] = {
            "sample_rate": self._settings.data.sample_rate,
            "n_best": search.n_best,
        }
        if is_attentional(model):
            settings["search"] = search_settings(search, tokenizer)
            settings["options"] = search_options("batch_size", "beam_size", "n_best")
            return GraphParts(search_graphs(model, sounds=True), [tokenizer], settings)
        return GraphParts([("model", self._recognition(model))], [tokenizer], settings)

    def litert(self, model: Any, longest: int) -> Any:
        from keras_seq.serving.model_graphs import GraphParts, with_fixed_shapes

        graph = with_fixed_shapes(self._recognition(model), longest)
        settings = {
            "sample_rate": self._settings.data.sample_rate,
            "n_best": self._settings.search.n_best,
            "max_samples": longest,
        }
        return GraphParts([("model", graph)], [self._run.target_tokenizer], settings)

    def _recognition(self, model: Any) -> Any:
        """Returns the graph of the whole search."""
        from keras_seq.inference.sound_search import make_sound_search
        from keras_seq.serving.model_graphs import recognition_graph

        search, tokenizer = self._settings.search, self._run.target_tokenizer
        beam_size = search.beam_size if search.beam_size > 1 else None
        return recognition_graph(
            make_sound_search(model, tokenizer, beam_size, search.n_best, search)
        )


class SpeechEvaluation(PlainEvaluation):
    """Loss and error rates of the texts of the validation recordings; see `Evaluation`."""

    def __init__(self, run: Run, model: Any) -> None:
        from keras_seq.training.speech_objective import make_recognition

        # A model for joined recordings still improves after it reads the single recordings of the
        # validation as well as it ever will; only the loss shows that.
        joins = run.settings.data.concatenation > 0
        super().__init__(run, "loss" if joins else "cer")
        self.tie_break = None if self.monitor == "loss" else "loss"
        self._tokenizer = run.target_tokenizer
        self._sample_count = run.settings.training.sample_count
        self._recognize = make_recognition(model, self._tokenizer, run.settings.search)

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        from keras_seq.evaluation.plugin_values import monitored_plugin_value, shown
        from keras_seq.evaluation.resampling import spread
        from keras_seq.evaluation.text_values import text_values
        from keras_seq.training.validator import Report, Sample

        result = self._recognize(batches)
        expected, found = map(self._tokenizer.decode, (result.expected, result.found))
        scores = text_values(found, expected, ("wer", "cer", "exact"), "auto", None)
        values = {"loss": result.loss} | {name: score.value for name, score in scores.items()}
        added = monitored_plugin_value(self.monitor, found, expected)
        values |= added
        summary = f"loss {result.loss:.3f}, {shown(added)}" + ", ".join(
            f"{score.name} {score.value:.2f}" for score in scores.values()
        )
        samples = [
            Sample(f"recording {i + 1}", [("reference", expected[i]), ("model", found[i])])
            for i in spread(self._sample_count, len(found))
        ]
        monitored = scores.get(self.monitor)
        return Report(values, summary, samples, signature=monitored.signature if monitored else "")


TASK = Speech()
