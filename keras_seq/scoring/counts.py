"""Precision, recall and F1 from counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Counts:
    """Counts of predicted and of true items, with precision, recall and F1.

        precision = correct / found
        recall    = correct / expected
        F1        = 2 * precision * recall / (precision + recall)
                  = 2 * correct / (found + expected)

    each 0 if it would be 0 / 0. `expected`, the number of true items, is the support.

    Example:

    >>> counts = Counts(correct=1, found=1, expected=4)
    >>> counts.precision, counts.recall, counts.f1
    (1.0, 0.25, 0.4)
    """

    correct: int
    found: int
    expected: int
    _empty: ClassVar[float] = 0.0

    @property
    def precision(self) -> float:
        """The fraction of predictions that are correct."""
        return self.correct / self.found if self.found else self._empty

    @property
    def recall(self) -> float:
        """The fraction of true items that are predicted."""
        return self.correct / self.expected if self.expected else self._empty

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.found + self.expected
        return 2 * self.correct / both if both else self._empty


def counts_table(title: str, counts: Mapping[str, Counts]) -> list[str]:
    """Returns the lines of a table: a head, and a line for each name.

    >>> for line in counts_table("label", {"yes": Counts(1, 1, 4)}):
    ...     print(line)
    label  precision  recall      F1  support
    yes        1.000   0.250   0.400        4
    """
    width = max(len(name) for name in (title, *counts))
    return [
        f"{title:{width}}  precision  recall      F1  support",
        *(
            f"{name:{width}}  {count.precision:9.3f}  {count.recall:6.3f}  {count.f1:6.3f}"
            f"  {count.expected:7,}"
            for name, count in counts.items()
        ),
    ]
