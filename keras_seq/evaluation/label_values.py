"""Accuracy and F1 of labels and tags, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from keras_seq.evaluation.resampling import SEED, resampled
from keras_seq.evaluation.values import MetricValue
from keras_seq.scoring import entities, entity_scores, label_scores

_NAMES = {"accuracy": "accuracy", "macro_f1": "macro F1", "entity_f1": "entity F1"}
_DIGITS = 4
_BINS = 15

Lines = Sequence[Sequence[str]]


def label_values(
    references: Lines, predictions: Lines, metrics: Sequence[str], samples: int | None = None
) -> dict[str, MetricValue]:
    """Computes metrics of the labels of each line: one label, or one tag for each word.

    Bootstrap resampling draws lines, because the tags of one line depend on each other. Without
    `samples`, there are no intervals.

    Example:

    >>> values = label_values([["cat"], ["dog"]], [["cat"], ["cat"]], ["accuracy"])
    >>> values["accuracy"].text
    'accuracy = 0.5000 lines:2|labels:2'
    """
    expected, predicted = _flat(references), _flat(predictions)
    scores = label_scores(expected, predicted)
    values = {"accuracy": scores.accuracy, "macro_f1": scores.macro_f1}
    if "entity_f1" in metrics:
        values["entity_f1"] = entity_scores(references, predictions).f1
    signature = f"lines:{len(references)}|labels:{len(expected)}"
    if samples is not None:
        signature += f"|bs:{samples}|seed:{SEED}"
    results = {}
    for name in metrics:
        metric = _RESAMPLED[name](references, predictions)
        mean, interval = resampled(metric, len(references), samples)
        own = f"{signature}|match:conlleval" if name == "entity_f1" else signature
        results[name] = MetricValue(_NAMES[name], values[name], own, mean, interval, _DIGITS)
    return results


def calibration_value(
    probabilities: Sequence[float], correct: Sequence[bool], samples: int | None = None
) -> MetricValue:
    """Computes the expected calibration error of predictions, with 15 bins.

        error = sum over bins b of n_b / n * |accuracy of b - mean probability of b|

    `probabilities` are those of the predicted labels. A prediction with the probability 0.8 should
    be right in 80 % of all cases; then the error is 0.

    Example:

    >>> calibration_value([0.8, 0.8, 0.8, 0.8], [True, True, True, False]).value
    0.05

    Reference:
        Guo et al., "On Calibration of Modern Neural Networks", 2017, section 2,
        https://arxiv.org/abs/1706.04599
    """
    shares = np.asarray(probabilities, float)
    differences = np.asarray(correct, float) - shares
    bins = np.minimum((shares * _BINS).astype(int), _BINS - 1)

    def metric(counts: np.ndarray) -> float:
        sums = np.bincount(bins, counts * differences, minlength=_BINS)
        return float(np.abs(sums).sum() / max(counts.sum(), 1))

    signature = f"lines:{len(shares)}|bins:{_BINS}"
    if samples is not None:
        signature += f"|bs:{samples}|seed:{SEED}"
    mean, interval = resampled(metric, len(shares), samples)
    value = round(metric(np.ones(len(shares))), 12)
    return MetricValue("calibration error", value, signature, mean, interval, _DIGITS)


def _flat(lines: Lines) -> list[str]:
    return [label for line in lines for label in line]


def _accuracy(references: Lines, predictions: Lines) -> Callable[[np.ndarray], float]:
    pairs = zip(references, predictions, strict=True)
    correct = np.array([sum(map(str.__eq__, *pair)) for pair in pairs])
    sizes = np.array([len(line) for line in references])
    return lambda counts: float(counts @ correct / max(counts @ sizes, 1))


def _macro_f1(references: Lines, predictions: Lines) -> Callable[[np.ndarray], float]:
    labels = np.array([*_flat(references), *_flat(predictions)])
    names, ids = np.unique(labels, return_inverse=True)
    true_ids, predicted_ids = np.split(ids, 2)
    line_of_label = np.repeat(np.arange(len(references)), [len(line) for line in references])

    def metric(counts: np.ndarray) -> float:
        weights = counts[line_of_label].astype(float)

        def per_label(ids: np.ndarray, weights: np.ndarray) -> np.ndarray:
            return np.bincount(ids, weights, minlength=len(names))

        total = per_label(true_ids, weights) + per_label(predicted_ids, weights)
        correct = per_label(true_ids, weights * (true_ids == predicted_ids))
        # Averages over the labels that occur in the resample.
        occurs = total > 0
        return float(np.mean(2 * correct[occurs] / total[occurs])) if occurs.any() else 0.0

    return metric


def _entity_f1(references: Lines, predictions: Lines) -> Callable[[np.ndarray], float]:
    pairs = [
        (entities(expected), entities(predicted))
        for expected, predicted in zip(references, predictions, strict=True)
    ]
    correct = np.array([len(expected & predicted) for expected, predicted in pairs])
    total = np.array([len(expected) + len(predicted) for expected, predicted in pairs])
    return lambda counts: float(2 * (counts @ correct) / max(counts @ total, 1))


# Each factory returns a function from a bootstrap resample (how often it has each line) to a score.
_RESAMPLED: dict[str, Callable[[Lines, Lines], Callable[[np.ndarray], float]]] = {
    "accuracy": _accuracy,
    "macro_f1": _macro_f1,
    "entity_f1": _entity_f1,
}
