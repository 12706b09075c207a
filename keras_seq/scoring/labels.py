"""Scores of labels: accuracy, F1 and the confusion matrix."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .counts import Counts, counts_table

# Maximum labels of a printed confusion matrix, which must fit a terminal.
_MAX_PRINTED_LABELS = 20


@dataclass(frozen=True)
class LabelScores:
    """Agreement of predicted and true labels.

    `labels` are all L labels, true or predicted, sorted. `confusion` `(L, L)` is the number of
    texts with the true label i (row) and the predicted label j (column).
    """

    labels: tuple[str, ...]
    confusion: np.ndarray

    @property
    def accuracy(self) -> float:
        """The fraction of texts with a correct label."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def macro_f1(self) -> float:
        """The unweighted mean of the F1 of all labels."""
        return float(np.mean([counts.f1 for counts in self.by_label.values()]))

    @property
    def micro_f1(self) -> float:
        """F1 of the summed counts; equals the accuracy if each text has one label."""
        total = int(self.confusion.sum())
        return Counts(int(np.trace(self.confusion)), total, total).f1

    @property
    def by_label(self) -> dict[str, Counts]:
        """Precision, recall, F1 and support of each label."""
        sums = self.confusion.sum(axis=0), self.confusion.sum(axis=1)
        numbers = np.stack([np.diagonal(self.confusion), *sums], axis=1).tolist()
        return {label: Counts(*row) for label, row in zip(self.labels, numbers, strict=True)}

    def table(self) -> str:
        """Returns a table of all scores, with the confusion matrix for at most 20 labels."""
        total = int(self.confusion.sum())
        scores = f"{self.accuracy:.3f}, macro F1 {self.macro_f1:.3f}, micro F1 {self.micro_f1:.3f}"
        lines = [f"accuracy {scores}, {total:,} labels", "", *counts_table("label", self.by_label)]
        if len(self.labels) <= _MAX_PRINTED_LABELS:
            lines += ["", *self._confusion_lines()]
        return "\n".join(lines)

    def _confusion_lines(self) -> list[str]:
        # Column headers are numbers, because names would be too wide for a terminal.
        numbers = range(1, len(self.labels) + 1)
        cells = [[f"{count:,}" for count in row] for row in self.confusion]
        width = max(len(cell) for row in [*cells, [str(numbers[-1])]] for cell in row)
        name_width = max(len(label) for label in self.labels)
        number_width = len(str(numbers[-1]))
        lines = [
            "confusion: a row for each true label, a column for each predicted label",
            " " * (number_width + 1 + name_width) + _row(map(str, numbers), width),
        ]
        for number, label, row in zip(numbers, self.labels, cells, strict=True):
            lines.append(f"{number:{number_width}} {label:{name_width}}" + _row(row, width))
        return lines


def _row(cells: Iterable[str], width: int) -> str:
    return "".join(f"  {cell:>{width}}" for cell in cells)


def label_scores(references: Sequence[str], predictions: Sequence[str]) -> LabelScores:
    """Scores one predicted label per text.

    Raises TypeError if an argument is a string, and ValueError if there are no labels, or the
    numbers of labels differ.

    Example:

    >>> scores = label_scores(["cat", "cat", "dog", "dog"], ["cat", "dog", "dog", "dog"])
    >>> scores.accuracy, scores.by_label["cat"].recall
    (0.75, 0.5)
    >>> print(scores.table())
    accuracy 0.750, macro F1 0.733, micro F1 0.750, 4 labels
    <BLANKLINE>
    label  precision  recall      F1  support
    cat        1.000   0.500   0.667        2
    dog        0.667   1.000   0.800        2
    <BLANKLINE>
    confusion: a row for each true label, a column for each predicted label
           1  2
    1 cat  1  1
    2 dog  0  2

    Reference:
        Sokolova and Lapalme, "A systematic analysis of performance measures for classification
        tasks", 2009. The macro F1 is the mean of F1, as in Opitz and Burst, "Macro F1 and Macro
        F1", 2019, section 2, https://arxiv.org/abs/1911.03347
    """
    for name, side in (("references", references), ("predictions", predictions)):
        if isinstance(side, str):
            raise TypeError(f"{name} must be a list of labels, not one string")
    if len(references) != len(predictions):
        raise ValueError(
            f"received {len(references)} references and {len(predictions)} predictions"
        )
    if len(references) == 0:
        raise ValueError("no labels: expected at least one text")
    labels, places = np.unique(np.array([*references, *predictions]), return_inverse=True)
    truth, predicted = np.split(places, 2)
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(confusion, (truth, predicted), 1)
    return LabelScores(tuple(str(label) for label in labels), confusion)
