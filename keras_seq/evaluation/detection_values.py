"""F1 and false alarms of detected words, and the threshold that is best for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_seq.data import parse_spans
from keras_seq.evaluation.resampling import SEED, resampled
from keras_seq.evaluation.values import MetricValue
from keras_seq.scoring import DetectionCounts, count_detections
from keras_seq.settings import Settings

# Thresholds to choose from: probabilities of 5 to 99 percent.
_THRESHOLDS = np.linspace(0.05, 0.99, 48)

# Words and the times of their ends, in seconds, of one recording.
Ends = Sequence[tuple[str, float]]


class Tolerance(NamedTuple):
    """Largest times between a detection and the end of its word, in seconds."""

    before: float
    after: float


def tolerance_of(settings: Settings) -> Tolerance:
    """Returns how far a detection may be from the end of its word."""
    section: Any = settings.model
    after = section.detection_seconds
    return Tolerance(after / 2, after)


def ends_of(spans: str, seconds: float) -> list[tuple[str, float]]:
    """Returns the words and the times of their ends in a recording that lasts `seconds`.

    Example:

    >>> ends_of("stop:0.5-1.2 go:1.5-", 2.0)
    [('stop', 1.2), ('go', 2.0)]
    """
    return [
        (span.word, seconds if span.end is None else min(span.end, seconds))
        for span in parse_spans(spans)
    ]


def recording_counts(
    found: Sequence[Any], expected: Ends, words: Sequence[str], tolerance: Tolerance
) -> DetectionCounts:
    """Counts the correct detections of all words in one recording.

    `found` are objects with `word` and `seconds`, in the order of time.

    Example:

    >>> from types import SimpleNamespace
    >>> late = SimpleNamespace(word="stop", seconds=9.0)
    >>> recording_counts([late], [("stop", 2.0)], ["stop"], Tolerance(0.2, 0.4)).f1
    0.0
    """
    total = DetectionCounts(0, 0, 0)
    for word in dict.fromkeys((*words, *(word for word, _ in expected))):
        times = [detection.seconds for detection in found if detection.word == word]
        ends = sorted(end for name, end in expected if name == word)
        total += count_detections(times, ends, tolerance.after, tolerance.before)
    return total


def detection_values(
    counts: Sequence[DetectionCounts],
    seconds: Sequence[float],
    metrics: Sequence[str],
    samples: int | None,
) -> dict[str, MetricValue]:
    """Computes metrics of recordings from their counts and their durations `seconds`."""
    array = np.array([(c.correct, c.found, c.expected) for c in counts], float).reshape(-1, 3)
    durations = np.asarray(seconds, float)

    def f1(weights: np.ndarray) -> float:
        correct, found, expected = weights @ array
        return float(2 * correct / (found + expected)) if found + expected else 1.0

    def false_alarms(weights: np.ndarray) -> float:
        correct, found, _ = weights @ array
        return float((found - correct) * 3600 / max(weights @ durations, 1e-9))

    lines, hours = len(array), durations.sum() / 3600
    signature = f"recordings:{lines}|hours:{hours:.3f}|words:{int(array[:, 2].sum())}"
    if samples is not None:
        signature += f"|bs:{samples}|seed:{SEED}"
    results = {}
    for name, label, metric, digits in (
        ("f1", "F1", f1, 4),
        ("false_alarms", "false alarms per hour", false_alarms, 2),
    ):
        if name in metrics:
            mean, interval = resampled(metric, lines, samples)
            value = metric(np.ones(lines))
            results[name] = MetricValue(label, value, signature, mean, interval, digits)
    return {name: results[name] for name in metrics}


def best_threshold(
    detector: Any,
    probabilities: Sequence[np.ndarray],
    expected: Sequence[Ends],
    tolerance: Tolerance,
) -> float:
    """Returns the threshold with the highest F1, in the middle of those that are equal."""
    scores = [
        sum(
            (
                recording_counts(
                    detector.detections(rows, threshold), ends, detector.words, tolerance
                )
                for rows, ends in zip(probabilities, expected, strict=True)
            ),
            DetectionCounts(0, 0, 0),
        ).f1
        for threshold in _THRESHOLDS
    ]
    best = [t for t, score in zip(_THRESHOLDS, scores, strict=True) if score >= max(scores) - 1e-9]
    return float(best[len(best) // 2])
