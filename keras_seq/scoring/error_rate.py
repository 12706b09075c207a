"""Word and character error rate of speech recognition.

numpy computes a row of the Levenshtein table for many lines at once. jiwer gives the same sums, but
needs RapidFuzz, a compiled library, and splits the errors by the arbitrary order of its traceback.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Unit = Literal["word", "character"]

# Cost of an error. A substitution costs 1 more, so the cheapest alignment has the fewest errors,
# and the fewest substitutions among alignments with equally many errors.
_ERROR = 1 << 32
# Maximum number of cells in a table row that is computed at once.
_CELLS = 1 << 18


@dataclass(frozen=True)
class Errors:
    """Substituted, inserted and deleted units of a corpus, and the length of its references."""

    substitutions: int
    insertions: int
    deletions: int
    length: int

    @property
    def rate(self) -> float:
        """Errors divided by the length of the references; 0 if both are 0."""
        errors = self.substitutions + self.insertions + self.deletions
        if not self.length:
            return float("inf") if errors else 0.0
        return errors / self.length


def word_errors(hypotheses: Sequence[str], references: Sequence[str]) -> Errors:
    """Counts errors of words separated by spaces.

        rate = (substitutions + insertions + deletions) / words of the references

    As in NIST's sclite and jiwer, the rate is computed over the corpus and is no mean over lines.
    It may exceed 1. Errors are counted in the alignment with the minimum edit distance
    (Levenshtein), or the fewest substitutions if several alignments are minimal. Raises ValueError
    if the numbers of lines differ.

    Example:

    >>> word_errors(["the cat sat here"], ["a cat sat"])
    Errors(substitutions=1, insertions=1, deletions=0, length=3)

    Reference:
        Morris, Maier and Green, "From WER and RIL to MER and WIL", Interspeech 2004, section 2
    """
    return Errors(*line_errors(hypotheses, references, "word").sum(axis=1).tolist())


def character_errors(hypotheses: Sequence[str], references: Sequence[str]) -> Errors:
    """Counts errors of characters; see `word_errors`.

    A character is a code point. Repeated spaces count as one, and spaces at the ends of a line do
    not count.

    Example:

    >>> character_errors(["one too"], ["one  two"])
    Errors(substitutions=1, insertions=0, deletions=0, length=7)
    """
    return Errors(*line_errors(hypotheses, references, "character").sum(axis=1).tolist())


def line_errors(hypotheses: Sequence[str], references: Sequence[str], unit: Unit) -> np.ndarray:
    """Returns the numbers of `Errors`, in their order, of each line: int64 `(4, lines)`."""
    if len(hypotheses) != len(references):
        raise ValueError(f"received {len(hypotheses)} hypotheses and {len(references)} references")
    numbers: dict[str, int] = {}

    def units(line: str) -> list[int]:
        parts = line.split() if unit == "word" else " ".join(line.split())
        return [numbers.setdefault(part, len(numbers)) for part in parts]

    pairs = list(zip(map(units, references), map(units, hypotheses), strict=True))
    # Sorting groups lines of similar length, which need little padding.
    order = sorted(range(len(pairs)), key=lambda line: (len(pairs[line][1]), len(pairs[line][0])))
    errors = np.zeros((4, len(pairs)), np.int64)
    at = 0
    while at < len(order):
        # A group contains references up to about twice the length of its shortest reference.
        limit = 2 * len(pairs[order[at]][1]) + 1
        count = max(1, _CELLS // (limit + 1))
        lines = [line for line in order[at : at + count] if len(pairs[line][1]) <= limit]
        at += len(lines)
        some = [pairs[line] for line in lines]
        costs = _costs(some)
        replaced = costs % _ERROR
        lengths = np.array([[len(side) for side in pair] for pair in some])
        # Deletions minus insertions is the difference of the lengths.
        deleted = (costs // _ERROR - replaced + lengths[:, 0] - lengths[:, 1]) // 2
        inserted = deleted - lengths[:, 0] + lengths[:, 1]
        errors[:, lines] = replaced, inserted, deleted, lengths[:, 0]
    return errors


def _costs(pairs: Sequence[tuple[list[int], list[int]]]) -> np.ndarray:
    """Returns the errors of each pair times `_ERROR`, plus the number of substitutions."""
    references = _padded([reference for reference, _ in pairs], -1)
    hypotheses = _padded([hypothesis for _, hypothesis in pairs], -2)
    lines = np.arange(len(pairs))
    lengths = np.array([[len(side) for side in pair] for pair in pairs])
    inserted = np.arange(hypotheses.shape[1] + 1) * _ERROR
    row = np.tile(inserted, (len(pairs), 1))
    costs = row[lines, lengths[:, 1]]
    for place in range(references.shape[1]):
        wrong = references[:, place : place + 1] != hypotheses
        best = row + _ERROR
        np.minimum(best[:, 1:], row[:, :-1] + wrong * (_ERROR + 1), out=best[:, 1:])
        # Adds any number of insertions without a loop.
        row = np.minimum.accumulate(best - inserted, axis=1) + inserted
        costs = np.where(lengths[:, 0] == place + 1, row[lines, lengths[:, 1]], costs)
    return costs


def _padded(rows: Sequence[list[int]], fill: int) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded
