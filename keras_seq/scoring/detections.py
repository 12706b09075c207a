"""Detections from frame probabilities, and their precision and recall."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


def detections(
    probabilities: Iterable[float], threshold: float = 0.5, refractory: int = 1
) -> Iterator[int]:
    """Yields the frames of detections.

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


class DetectionCounts(NamedTuple):
    """Counts of detections; `+` adds the counts of several recordings.

    Attributes:
        right: Number of correct detections, at most one for each occurrence.
        found: Number of detections.
        true: Number of occurrences.
    """

    right: int
    found: int
    true: int

    def __add__(self, other: "DetectionCounts") -> "DetectionCounts":  # type: ignore[override]
        return DetectionCounts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def precision(self) -> float:
        """The fraction of detections that are correct; 1 without detections."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """The fraction of occurrences that are detected; 1 without occurrences."""
        return self.right / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 1 without detections and occurrences."""
        both = self.found + self.true
        return 2 * self.right / both if both else 1.0


def count_detections(
    found: Sequence[float], true: Sequence[float], tolerance: float
) -> DetectionCounts:
    """Counts correct detections.

        right: true <= found <= true + tolerance

    An occurrence is matched with the earliest unmatched detection, which maximizes the number of
    matches because the tolerance is constant.

    Args:
        found: Sorted times of the detections, in frames or seconds.
        true: Sorted end times of the occurrences.
        tolerance: Maximum delay of a detection.

    Returns:
        `DetectionCounts`.

    Example:

    >>> count_detections([1.1, 4.0, 4.5], [1.0, 3.0], 0.5)
    DetectionCounts(right=1, found=3, true=2)
    """
    right = place = 0
    for time in true:
        while place < len(found) and found[place] < time:
            place += 1
        if place < len(found) and found[place] <= time + tolerance:
            right += 1
            place += 1
    return DetectionCounts(right, len(found), len(true))
