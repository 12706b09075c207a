"""Accuracy and F1 of labels and tags with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from keras_seq.evaluation.resampling import SEED, resampled
from keras_seq.evaluation.values import MetricValue
from keras_seq.scoring import entities, entity_scores, label_scores

_NAMES = {"accuracy": "accuracy", "macro_f1": "macro F1", "entity_f1": "entity F1"}
_DIGITS = 4


def label_values(
    references: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str]],
    metrics: Sequence[str],
    samples: int | None = None,
) -> dict[str, MetricValue]:
    """Metrics of labels. A resample is one of lines, because the tags of a line depend on another.

    Args:
        references: The true labels of each line: one of a text, or one for each word.
        predictions: As many, of the run.
        metrics: Of `"accuracy"`, `"macro_f1"` and `"entity_f1"`.
        samples: Number of resamples; None for no intervals.

    Raises:
        TypeError, ValueError: As `label_scores` and `entity_scores`.

    Example:

    >>> found = label_values([["cat"], ["dog"]], [["cat"], ["cat"]], ["accuracy"])
    >>> found["accuracy"].text
    'accuracy = 0.5000 lines:2|labels:2'
    """
    truth, given = (
        [label for line in lines for label in line] for lines in (references, predictions)
    )
    words = label_scores(truth, given)
    values = {"accuracy": words.accuracy, "macro_f1": words.macro_f1}
    makers: dict[str, Callable[[], Callable[[np.ndarray], float]]] = {
        "accuracy": lambda: _accuracy(references, predictions),
        "macro_f1": lambda: _macro_f1(references, predictions),
        "entity_f1": lambda: _entity_f1(references, predictions),
    }
    signature = f"lines:{len(references)}|labels:{len(truth)}"
    if samples is not None:
        signature += f"|bs:{samples}|seed:{SEED}"
    found = {}
    for name in metrics:
        mean = interval = None
        if name == "entity_f1":
            values[name] = entity_scores(references, predictions).f1
        if samples is not None:
            mean, interval = resampled(makers[name](), len(references), samples)
        shown = f"{signature}|match:conlleval" if name == "entity_f1" else signature
        found[name] = MetricValue(_NAMES[name], values[name], shown, mean, interval, _DIGITS)
    return found


def _accuracy(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> Callable[[np.ndarray], float]:
    correct = np.array(
        [sum(map(str.__eq__, *pair)) for pair in zip(references, predictions, strict=True)]
    )
    sizes = np.array([len(line) for line in references])
    return lambda counts: float(counts @ correct / max(counts @ sizes, 1))


def _macro_f1(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> Callable[[np.ndarray], float]:
    truth, given = (
        [label for line in lines for label in line] for lines in (references, predictions)
    )
    names, places = np.unique(np.array([*truth, *given]), return_inverse=True)
    true_places, given_places = np.split(places, 2)
    line_of_word = np.repeat(np.arange(len(references)), [len(line) for line in references])

    def metric(counts: np.ndarray) -> float:
        weights = counts[line_of_word].astype(float)
        expected, found, correct = (
            np.bincount(where, some, minlength=len(names))
            for where, some in (
                (true_places, weights),
                (given_places, weights),
                (true_places, weights * (true_places == given_places)),
            )
        )
        # The mean is over the labels that occur in the resample.
        occurs = expected + found > 0
        if not occurs.any():
            return 0.0
        return float(np.mean(2 * correct[occurs] / (expected + found)[occurs]))

    return metric


def _entity_f1(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> Callable[[np.ndarray], float]:
    pairs = [
        (entities(truth), entities(given))
        for truth, given in zip(references, predictions, strict=True)
    ]
    correct = np.array([len(truth & given) for truth, given in pairs])
    either = np.array([len(truth) + len(given) for truth, given in pairs])
    return lambda counts: float(2 * (counts @ correct) / max(counts @ either, 1))
