"""The task `wake-word`: detects words, and when they end, in recordings and streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.data.spans import NO_SPANS
from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.tasks.sounds import SoundExporter, SoundTask, refused_settings, sample_rate
from keras_seq.tasks.task import PlainEvaluation, make_model
from keras_seq.text import FIRST_WORD, InputError, Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from keras_seq.evaluation.values import TestSet
    from keras_seq.tasks.task import Read, TestResult
    from keras_seq.training.validator import Batches, Report


# Frames that an export with fixed shapes reads at a time.
_FRAMES_OF_A_PIECE = 10


class WakeWord(SoundTask):
    """Detects words; trained on the frames after the end of each of their spans."""

    name = "wake-word"
    families = ("wake-word",)
    usage = "detect {} sound.wav"
    without = refused_settings("batch_size") | {
        "tokenizer.lowercase": "words differ as they are written"
    }
    no_transcript = "no recording has a word: expected at least one span"
    # The model is small, so larger batches take hardly longer.
    recordings_per_batch = 64
    metrics = ("f1", "false_alarms")
    monitors = ("f1", "loss")

    def transcript(self, target: str) -> str:
        from keras_seq.data import parse_spans

        return " ".join(span.word for span in parse_spans(target))

    def max_target_length(self, settings: Settings) -> int:
        return self.max_source_length(settings)

    def encoder(self, settings: Settings, source: Tokenizer, target: Any, read: Read) -> Any:
        from keras_seq.preparation.sound_encoding import SpanEncoder, recording_folders

        rate, section = sample_rate(settings), _section(settings)
        step, seconds = section.step_samples(rate), settings.data.max_seconds
        return SpanEncoder(target, recording_folders(settings), rate, seconds, step)

    def model(self, settings: Settings, source_size: int, target_size: int, dtype: Any) -> Any:
        from keras_seq.layers import LogMelSpectrogram, RandomNoise

        section, rate = _section(settings), sample_rate(settings)
        features = LogMelSpectrogram(
            rate,
            section.num_mels,
            frame_length=round(section.frame_length * rate),
            frame_step=section.step_samples(rate),
            causal=True,
            dtype=dtype,
            name="features",
        )
        noise = RandomNoise(
            section.most_noise, section.least_noise, section.noise_rate, name="noise"
        )
        return make_model(settings, features, target_size - FIRST_WORD, noise=noise, dtype=dtype)

    def objective(self, settings: Settings) -> Any:
        from keras_seq.training.detection_objective import DetectionObjective

        return DetectionObjective(settings)

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Any:
        return WakeWordEvaluation(run, model)

    def describe_targets(self, run: Run, targets: Any) -> list[str]:
        lines = []
        for row in targets:
            words = run.target_tokenizer.decode([[id for id in row if id >= FIRST_WORD]])
            lines.append(f"words            {words[0] or NO_SPANS}")
        return lines

    def export(self, run: Run, base: Any, settings: Settings, **options: Any) -> Path:
        from keras_seq.serving.detector_export import export_detector_run

        return export_detector_run(run, base, **options)

    def exporter(self, run: Run, settings: Settings) -> Any:
        return DetectionExporter(run, settings)

    def evaluate(self, test: TestSet) -> TestResult:
        from keras_seq.evaluation.detection_values import (
            detection_values,
            ends_of,
            recording_counts,
            tolerance_of,
        )
        from keras_seq.inference.wake_words import WakeWordDetector, shown_detections

        detector = WakeWordDetector.of_run(test.run, test.model, test.search_settings)
        results, seconds = detector.detect_with_durations(test.sources)
        expected = [ends_of(*pair) for pair in zip(test.references, seconds, strict=True)]
        tolerance = tolerance_of(test.run.settings)
        counts = [
            recording_counts(found, ends, detector.words, tolerance)
            for found, ends in zip(results, expected, strict=True)
        ]
        outputs = tuple(map(shown_detections, results))
        return detection_values(counts, seconds, test.metrics, test.samples), outputs, 0

    def baseline(self, test: TestSet) -> Any:
        from keras_seq.data import parse_spans, sound_info
        from keras_seq.evaluation.detection_values import detection_values
        from keras_seq.evaluation.values import Baseline
        from keras_seq.scoring import DetectionCounts

        # Of the words in a recording at most one can be the most frequent word at its end.
        words = [len(parse_spans(text)) for text in test.references]
        counts = [DetectionCounts(min(number, 1), 1, number) for number in words]
        seconds = [sound_info(path).seconds for path in test.sources]
        values = detection_values(counts, seconds, test.metrics, None)
        return Baseline("one detection in each recording", values)


class DetectionExporter(SoundExporter):
    """Exporter of a detector of words; see `Exporter`."""

    verb = "detects words in"

    def expected(self, model: Any, recordings: Sequence[Any]) -> list[str]:
        from keras_seq.inference.wake_words import WakeWordDetector, shown_detections

        detector = WakeWordDetector.of_run(self._run, model, self._settings.search)
        return [shown_detections(found) for found in detector.detect(recordings)]

    def onnx(self, model: Any) -> Any:
        from keras_seq.serving.model_graphs import GraphParts, detection_graph

        return GraphParts([("model", detection_graph(model))], [], self._constants(model))

    def longest_input(self, max_input: float | None) -> int:
        if max_input is not None:
            raise InputError("max_input: a detector reads streams of any length")
        return super().longest_input(None)

    def litert(self, model: Any, longest: int) -> Any:
        from keras_seq.serving.model_graphs import GraphParts, stream_graph

        settings = self._constants(model)
        size = _FRAMES_OF_A_PIECE * settings["frame_step"]
        graph = stream_graph(model, size)
        return GraphParts([("model", graph)], [], settings | {"piece_samples": size})

    def _constants(self, model: Any) -> dict[str, Any]:
        from keras_seq.inference.wake_words import WakeWordDetector

        detector = WakeWordDetector.of_run(self._run, model, self._settings.search)
        names = ("sample_rate", "frame_step", "hold", "threshold")
        return {"labels": detector.words} | {name: getattr(detector, name) for name in names}


def _section(settings: Settings) -> Any:
    return settings.model


class WakeWordEvaluation(PlainEvaluation):
    """Loss, F1 and false alarms on the validation recordings; see `Evaluation`.

    The detections are those of the threshold with the best F1, which `WakeWordDetector` then uses.
    """

    def __init__(self, run: Run, model: Any) -> None:
        from keras_seq.data import parse_spans
        from keras_seq.inference.wake_words import WakeWordDetector

        has_words = any(map(parse_spans, run.valid_lines()[1]))
        super().__init__(run, "f1" if has_words else "loss")
        self.tie_break = "loss" if has_words else None
        if not has_words:
            self.notices = [
                "the validation recordings have no word, so the loss selects the checkpoint and "
                "the threshold means nothing: give recordings with words by --valid-data"
            ]
        self._detector = WakeWordDetector.of_run(run, model)
        self._settings = run.settings
        self._sample_count = run.settings.training.sample_count

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        from keras_seq.evaluation.resampling import spread
        from keras_seq.training.detection_objective import validate_detections
        from keras_seq.training.validator import Report, Sample

        result = validate_detections(self._detector, batches, self._settings)
        total = result.counts
        values = {
            "loss": result.loss,
            "f1": total.f1,
            "false_alarms": (total.found - total.correct) / result.hours,
            "threshold": result.threshold,
        }
        summary = (
            f"loss {result.loss:.4f}, F1 {total.f1:.4f}, precision {total.precision:.4f}, recall "
            f"{total.recall:.4f}, threshold {result.threshold:.2f}"
        )
        samples = [
            Sample(
                f"recording {i + 1}",
                [
                    ("reference", _shown(result.expected[i])),
                    ("model", _shown([(one.word, one.seconds) for one in result.found[i]])),
                ],
            )
            for i in spread(self._sample_count, len(result.found))
        ]
        return Report(values, summary, samples)


def _shown(ends: Sequence[tuple[str, float]]) -> str:
    return " ".join(f"{word}:{seconds:.2f}" for word, seconds in ends) or NO_SPANS


TASK = WakeWord()
