"""Accuracy and F1 of labels and tags, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from keras_seq.evaluation.resampling import SEED, resampled
from keras_seq.evaluation.values import MetricValue
from keras_seq.scoring import entities, entity_scores, label_scores

_NAMES = {"accuracy": "accuracy", "macro_f1": "macro F1", "entity_f1": "entity F1"}
_DIGITS = 4

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
