"""The task `wake-word`: detects when words are said in recordings and streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_seq.data.spans import NO_SPANS
from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.tasks.sounds import SoundTask, recording_folders, refused_settings, sample_rate
from keras_seq.tasks.task import PlainEvaluation, make_model
from keras_seq.text import FIRST_WORD, UNK_ID, Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from keras_seq.evaluation.detection_values import Tolerance
    from keras_seq.evaluation.values import TestSet
    from keras_seq.tasks.task import Read, TestResult
    from keras_seq.training.validator import Batches, Report


class WakeWord(SoundTask):
    """Detects words; trained on the frames after the end of each of their spans."""

    name = "wake-word"
    families = ("wake-word",)
    usage = "detect {} sound.wav"
    without = refused_settings("batch_size") | {
        "tokenizer.lowercase": "words are told apart as they are written"
    }
    metrics = ("f1", "false_alarms")
    monitors = ("f1", "loss")

    def transcript(self, target: str) -> str:
        from keras_seq.data import parse_spans

        return " ".join(span.word for span in parse_spans(target))

    def max_target_length(self, settings: Settings) -> int:
        return self.max_source_length(settings)

    def encoder(self, settings: Settings, source: Tokenizer, target: Any, read: Read) -> Any:
        from keras_seq.preparation.sound_encoding import SpanEncoder

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

    def evaluate(self, test: TestSet) -> TestResult:
        from keras_seq.evaluation.detection_values import detection_values, recording_counts
        from keras_seq.inference.wake_words import WakeWordDetector

        detector = WakeWordDetector.of_run(test.run, test.model, test.search.get("batch_size"))
        results, seconds = detector.detect_with_durations(test.sources)
        expected = [ends_of(*pair) for pair in zip(test.references, seconds, strict=True)]
        tolerance = tolerance_of(test.run.settings)
        counts = [
            recording_counts(found, ends, detector.words, tolerance)
            for found, ends in zip(results, expected, strict=True)
        ]
        outputs = tuple(
            " ".join(f"{one.word}:{one.seconds:.2f}" for one in found) or NO_SPANS
            for found in results
        )
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


def _section(settings: Settings) -> Any:
    return settings.model


def tolerance_of(settings: Settings) -> Tolerance:
    """Returns how far a detection may be from the end of its word."""
    from keras_seq.evaluation.detection_values import Tolerance

    after = _section(settings).detection_seconds
    return Tolerance(after / 2, after)


def ends_of(spans: str, seconds: float) -> list[tuple[str, float]]:
    """Returns the words and the times of their ends in a recording of so many seconds."""
    from keras_seq.data import parse_spans

    return [
        (span.word, seconds if span.end is None else min(span.end, seconds))
        for span in parse_spans(spans)
    ]


class WakeWordEvaluation(PlainEvaluation):
    """Loss, F1 and false alarms on the validation recordings; see `Evaluation`.

    The detections are those of the threshold with the best F1, which `WakeWordDetector` then uses.
    """

    def __init__(self, run: Run, model: Any) -> None:
        from keras_seq.inference.wake_words import WakeWordDetector

        super().__init__(run, "f1")
        self.tie_break = "loss"
        self._detector = WakeWordDetector.of_run(run, model)
        self._settings = run.settings
        self._sample_count = run.settings.training.sample_count

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        from keras_seq.evaluation.detection_values import best_threshold, recording_counts
        from keras_seq.scoring import DetectionCounts
        from keras_seq.training.detection_objective import labels_of_rows
        from keras_seq.training.validator import Report, Sample, spread

        detector, tolerance = self._detector, tolerance_of(self._settings)
        audio, targets = _recordings(batches)
        logits = detector.logits(audio)
        labels = labels_of_rows(targets, [len(rows) for rows in logits], self._settings)
        loss = _mean_loss(logits, labels)
        rate = detector.frame_step / detector.sample_rate
        expected = [
            [(detector.words[row[i] - FIRST_WORD], (i + 1) * rate) for i in _ends(row)]
            for row in targets
        ]
        probabilities = [1 / (1 + np.exp(-rows)) for rows in logits]
        threshold = best_threshold(detector, probabilities, expected, tolerance)
        results = [detector.detections(rows, threshold) for rows in probabilities]
        counts = [
            recording_counts(found, ends, detector.words, tolerance)
            for found, ends in zip(results, expected, strict=True)
        ]
        total = sum(counts, DetectionCounts(0, 0, 0))
        hours = sum(map(len, audio)) / detector.sample_rate / 3600
        values = {
            "loss": loss,
            "f1": total.f1,
            "false_alarms": (total.found - total.correct) / hours,
            "threshold": threshold,
        }
        summary = (
            f"loss {loss:.4f}, F1 {total.f1:.4f}, precision {total.precision:.4f}, recall "
            f"{total.recall:.4f}, threshold {threshold:.2f}"
        )
        samples = [
            Sample(
                f"recording {i + 1}",
                [
                    ("reference", _shown(expected[i])),
                    ("model", _shown([(one.word, one.seconds) for one in results[i]])),
                ],
            )
            for i in spread(self._sample_count, len(results))
        ]
        return Report(values, summary, samples)


def _recordings(batches: Batches) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns the samples of each recording, and its frames with the ids of words."""
    from keras_seq.training.speech_objective import sound_inputs

    audio, targets = [], []
    for batch in batches:
        inputs = sound_inputs(batch["source"])
        frames = np.count_nonzero(batch["target_output"], axis=1) - 1
        audio += [row[:n] for row, n in zip(*inputs.values(), strict=True)]
        targets += [row[:n] for row, n in zip(batch["target_output"], frames, strict=True)]
    # A batch may be filled up with empty rows.
    real = [i for i, samples in enumerate(audio) if len(samples)]
    return [audio[i] for i in real], [targets[i] for i in real]


def _ends(row: np.ndarray) -> Sequence[int]:
    """Returns the frames in which a word ends."""
    frames: list[int] = np.flatnonzero(row != UNK_ID).tolist()
    return frames


def _mean_loss(logits: Sequence[np.ndarray], labels: Sequence[np.ndarray]) -> float:
    """Returns the mean binary cross-entropy over frames and words."""
    x, y = np.concatenate(logits), np.concatenate(labels)
    return float(np.mean(np.logaddexp(0, x) - y * x))


def _shown(ends: Sequence[tuple[str, float]]) -> str:
    return " ".join(f"{word}:{seconds:.2f}" for word, seconds in ends) or NO_SPANS


TASK = WakeWord()
