"""Detections from probabilities, and their scores."""

import itertools

import numpy as np
import pytest

from keras_seq.scoring import DetectionCounts, count_detections, detections


@pytest.mark.parametrize(
    ("refractory", "expected"),
    [(1, [1, 2, 4, 5, 6]), (2, [1, 4, 6]), (3, [1, 4]), (4, [1, 5]), (100, [1])],
)
def test_refractory_time_suppresses_following_detections(refractory, expected):
    probabilities = [0.49, 0.5, 0.9, 0.1, 0.7, 0.6, 0.5]
    assert list(detections(probabilities, refractory=refractory)) == expected


def test_detection_threshold_is_inclusive():
    assert list(detections([0.2, 0.6, 0.95], threshold=0.95)) == [2]
    assert list(detections([0.2, 0.6, 0.95], threshold=0.96)) == []


def test_detections_are_yielded_while_the_stream_is_read():
    heard = []

    def endless():
        for frame in itertools.count():
            heard.append(frame)
            yield 1.0 if frame % 10 == 7 else 0.0

    stream = detections(endless(), refractory=5)
    assert next(stream) == 7 and heard[-1] == 7
    assert next(stream) == 17 and heard[-1] == 17


def test_refractory_time_of_zero_raises_value_error():
    with pytest.raises(ValueError, match="`refractory` must be at least 1, received 0"):
        detections([], refractory=0)


def most_pairs(found, true, tolerance, early):
    """Returns the maximum number of matched detections by exhaustive search."""
    if not true:
        return 0
    best = most_pairs(found, true[1:], tolerance, early)
    for place, time in enumerate(found):
        if true[0] - early <= time <= true[0] + tolerance:
            rest = found[:place] + found[place + 1 :]
            best = max(best, 1 + most_pairs(rest, true[1:], tolerance, early))
    return best


def test_count_detections_finds_the_maximum_matching():
    generator = np.random.default_rng(0)
    for _ in range(300):
        found = sorted(generator.integers(0, 12, generator.integers(0, 6)).tolist())
        true = sorted(generator.integers(0, 12, generator.integers(0, 5)).tolist())
        tolerance = int(generator.integers(0, 4))
        early = int(generator.integers(0, 3))
        counts = count_detections(found, true, tolerance, early)
        best = most_pairs(found, true, tolerance, early)
        assert counts == DetectionCounts(best, len(found), len(true))


def test_detection_counts_add_up_and_give_precision_recall_and_f1():
    total = DetectionCounts(2, 3, 2) + DetectionCounts(1, 1, 4)
    assert total == DetectionCounts(3, 4, 6)
    assert total.precision == 3 / 4 and total.recall == 3 / 6 and total.f1 == pytest.approx(0.6)
    nothing = DetectionCounts(0, 0, 0)
    assert (nothing.precision, nothing.recall, nothing.f1) == (1, 1, 1)
