"""F1 and false alarms of detected words, and the choice of a threshold."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_seq.evaluation.detection_values import (
    Tolerance,
    best_threshold,
    detection_values,
    recording_counts,
)
from keras_seq.inference.wake_words import WakeWordDetector, sigmoid
from keras_seq.scoring import DetectionCounts

TOLERANCE = Tolerance(0.1, 0.5)


def found(*pairs):
    return [SimpleNamespace(word=word, seconds=seconds) for word, seconds in pairs]


def test_each_word_is_counted_for_itself():
    expected = [("stop", 1.0), ("go", 2.0), ("other", 3.0)]
    heard = found(("go", 1.2), ("stop", 1.4), ("go", 2.45), ("go", 2.6))
    counts = recording_counts(heard, expected, ["go", "stop"], TOLERANCE)
    # A word that the model does not know counts as expected.
    assert counts == DetectionCounts(correct=2, found=4, expected=3)


def test_values_are_those_of_the_summed_counts():
    counts = [DetectionCounts(3, 4, 5), DetectionCounts(0, 2, 0), DetectionCounts(1, 1, 1)]
    values = detection_values(counts, [1800, 900, 900], ("false_alarms", "f1"), samples=50)
    assert list(values) == ["false_alarms", "f1"]
    assert values["f1"].value == pytest.approx(2 * 4 / (7 + 6))
    assert values["false_alarms"].value == pytest.approx(3)
    assert values["f1"].interval > 0 and "recordings:3|hours:1.000|words:6" in values["f1"].text
    nothing = detection_values([DetectionCounts(0, 0, 0)], [1.0], ("f1",), None)
    assert nothing["f1"].value == 1


def test_threshold_is_in_the_middle_of_the_best():
    detector = WakeWordDetector(
        SimpleNamespace(variables=[]), ["go"], sample_rate=10, frame_step=1, hold=2
    )
    right = np.array([0.1, 0.8, 0.1, 0.1, 0.1, 0.1, 0.1])[:, None]
    wrong = np.array([0.1, 0.1, 0.1, 0.1, 0.4, 0.1, 0.1])[:, None]
    threshold = best_threshold(detector, [right, wrong], [[("go", 0.2)], []], TOLERANCE)
    assert threshold == pytest.approx(0.6, abs=0.03)


def test_probabilities_of_large_logits_do_not_overflow():
    # Warnings are errors in tests.
    logits = np.array([-1000.0, 0.0, 1000.0], np.float32)
    np.testing.assert_array_equal(sigmoid(logits), [0, 0.5, 1])
