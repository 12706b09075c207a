"""Detections from frame probabilities, and their precision and recall."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .counts import Counts


def detections(
    probabilities: Iterable[float], threshold: float = 0.5, refractory: int = 1
) -> Iterator[int]:
    """Yields the frame of each detection.

    A frame is a detection if its probability reaches the threshold and no detection was less than
    `refractory` frames before. Works on streams: detections are yielded as probabilities arrive.

    Args:
        probabilities: A number for each frame.
        threshold: Minimum probability of a detection.
        refractory: Positive integer, the minimum distance of two detections in frames; longer than
            the time for which one occurrence keeps the probability high.

    Yields:
        Frame indices, from 0.

    Raises:
        ValueError: If `refractory` is less than 1.

    Example:

    >>> list(detections([0.1, 0.9, 0.9, 0.2, 0.8], refractory=3))
    [1, 4]
    """
    if refractory < 1:
        raise ValueError(f"`refractory` must be at least 1, received {refractory!r}.")
    return _detections(probabilities, threshold, refractory)


def _detections(probabilities: Iterable[float], threshold: float, refractory: int) -> Iterator[int]:
    free_from = 0
    for frame, probability in enumerate(probabilities):
        if frame >= free_from and probability >= threshold:
            free_from = frame + refractory
            yield frame


@dataclass(frozen=True)
class DetectionCounts(Counts):
    """Counts of correct detections, of detections and of occurrences.

    At most one detection is correct for each occurrence. `+` adds the counts of several recordings.
    Precision, recall and F1 are 1 if they would be 0 / 0.
    """

    _empty = 1.0

    def __add__(self, other: "DetectionCounts") -> "DetectionCounts":
        found, expected = self.found + other.found, self.expected + other.expected
        return DetectionCounts(self.correct + other.correct, found, expected)


def count_detections(
    found: Sequence[float], true: Sequence[float], tolerance: float, early: float = 0.0
) -> DetectionCounts:
    """Counts correct detections.

        correct: true - early <= found <= true + tolerance

    An occurrence is matched with the earliest unmatched detection, which maximizes the number of
    matches because the tolerances are constant.

    Args:
        found: Sorted times of the detections, in frames or seconds.
        true: Sorted end times of the occurrences.
        tolerance: Maximum delay of a detection.
        early: Maximum time of a detection before the end of its occurrence.

    Example:

    >>> count_detections([1.1, 4.0, 4.5], [1.0, 3.0], 0.5)
    DetectionCounts(correct=1, found=3, expected=2)
    """
    correct = place = 0
    for time in true:
        while place < len(found) and found[place] < time - early:
            place += 1
        if place < len(found) and found[place] <= time + tolerance:
            correct += 1
            place += 1
    return DetectionCounts(correct, len(found), len(true))
