"""Word and character error rate, as speech recognition counts them.

By numpy, a row of the table of Levenshtein for many lines at a time. jiwer would bring RapidFuzz,
a compiled library, for these few lines, and splits the errors of an alignment by the order in
which it happens to walk back; the sums are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# What an error costs beside a substitution, of which only the number is counted in the rest: so
# the fewest errors are found, and of their alignments one with the fewest substitutions.
_ERROR = 1 << 32
# So many cells of a row of the table are computed at once.
_CELLS = 1 << 18


@dataclass(frozen=True)
class Errors:
    """The errors of a corpus.

    Attributes:
        substitutions: Units of the references that have become others.
        insertions: Units that are in no reference.
        deletions: Units of the references that are missing.
        length: Units of the references.
    """

    substitutions: int
    insertions: int
    deletions: int
    length: int

    @property
    def rate(self) -> float:
        """Errors for each unit of the references; 0 where there is nothing and no error."""
        errors = self.substitutions + self.insertions + self.deletions
        if not self.length:
            return float("inf") if errors else 0.0
        return errors / self.length


@dataclass(frozen=True)
class LineErrors:
    """The errors of each line, in the order of the lines.

    Attributes:
        substitutions, insertions, deletions, lengths: As those of `Errors`, int64 `(lines,)`.
    """

    substitutions: np.ndarray
    insertions: np.ndarray
    deletions: np.ndarray
    lengths: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Errors of each line, int64 `(lines,)`."""
        return self.substitutions + self.insertions + self.deletions

    @property
    def total(self) -> Errors:
        """The errors of the corpus."""
        counts = (self.substitutions, self.insertions, self.deletions, self.lengths)
        return Errors(*(int(count.sum()) for count in counts))


def word_errors(hypotheses: Sequence[str], references: Sequence[str]) -> Errors:
    """Counts wrong words, of which spaces are the bounds.

        rate = (substitutions + insertions + deletions) / words of the references

    Over the corpus, not a mean over lines, as NIST's sclite and jiwer do. The
    errors are the fewest that turn a reference into its hypothesis (Levenshtein);
    where several alignments have as few, one with the fewest substitutions counts.

    Args:
        hypotheses: What was recognised, a string for each line.
        references: What was said.

    Returns:
        The `Errors`, whose `rate` may exceed 1.

    Raises:
        ValueError: If there are not as many of both.

    Example:

    >>> word_errors(["the cat sat here"], ["a cat sat"])
    Errors(substitutions=1, insertions=1, deletions=0, length=3)

    Reference:
        Morris, Maier and Green, "From WER and RIL to MER and WIL", Interspeech
        2004, section 2
    """
    return line_word_errors(hypotheses, references).total


def character_errors(hypotheses: Sequence[str], references: Sequence[str]) -> Errors:
    """Counts wrong characters, as `word_errors` words.

    A character is a code point. Spaces count, but not how many there are in a row, nor
    those at the ends of a line.

    Args:
        hypotheses: What was recognised, a string for each line.
        references: What was said.

    Returns:
        The `Errors`.

    Raises:
        ValueError: If there are not as many of both.

    Example:

    >>> character_errors(["one too"], ["one  two"])
    Errors(substitutions=1, insertions=0, deletions=0, length=7)
    """
    return line_character_errors(hypotheses, references).total


def line_word_errors(hypotheses: Sequence[str], references: Sequence[str]) -> LineErrors:
    """Counts wrong words of each line, as `word_errors` does of the corpus."""
    return _errors(hypotheses, references, str.split)


def line_character_errors(hypotheses: Sequence[str], references: Sequence[str]) -> LineErrors:
    """Counts wrong characters of each line, as `character_errors` does of the corpus."""
    return _errors(hypotheses, references, lambda line: list(" ".join(line.split())))


def _errors(hypotheses: Sequence[str], references: Sequence[str], cut: Any) -> LineErrors:
    if len(hypotheses) != len(references):
        raise ValueError(f"received {len(hypotheses)} hypotheses and {len(references)} references")
    numbers: dict[str, int] = {}

    def units(line: str) -> list[int]:
        return [numbers.setdefault(unit, len(numbers)) for unit in cut(line)]

    pairs = [
        (units(reference), units(hypothesis))
        for reference, hypothesis in zip(references, hypotheses, strict=True)
    ]
    # Lines of like length together, so that little is computed of what is not there.
    order = sorted(range(len(pairs)), key=lambda line: (len(pairs[line][1]), len(pairs[line][0])))
    found = np.zeros((3, len(pairs)), np.int64)
    at = 0
    while at < len(order):
        # The lines to come are longer, but twice as long at most.
        limit = 2 * len(pairs[order[at]][1]) + 1
        count = max(1, _CELLS // (limit + 1))
        lines = [line for line in order[at : at + count] if len(pairs[line][1]) <= limit]
        at += len(lines)
        some = [pairs[line] for line in lines]
        costs = _costs(some)
        replaced = costs % _ERROR
        lengths = np.array([[len(side) for side in pair] for pair in some])
        # What is missing less what is too much is the difference of the lengths.
        missing = (costs // _ERROR - replaced + lengths[:, 0] - lengths[:, 1]) // 2
        found[:, lines] = replaced, missing - lengths[:, 0] + lengths[:, 1], missing
    substitutions, insertions, deletions = found
    sizes = np.array([len(reference) for reference, _ in pairs], np.int64)
    return LineErrors(substitutions, insertions, deletions, sizes)


def _costs(pairs: Sequence[tuple[list[int], list[int]]]) -> np.ndarray:
    """Of each pair the errors times `_ERROR`, plus the substitutions among them."""
    references = _padded([reference for reference, _ in pairs], -1)
    hypotheses = _padded([hypothesis for _, hypothesis in pairs], -2)
    lines = np.arange(len(pairs))
    lengths = np.array([[len(side) for side in pair] for pair in pairs])
    inserted = np.arange(hypotheses.shape[1] + 1) * _ERROR
    row = np.tile(inserted, (len(pairs), 1))
    found = row[lines, lengths[:, 1]]
    for place in range(references.shape[1]):
        wrong = references[:, place : place + 1] != hypotheses
        best = row + _ERROR
        np.minimum(best[:, 1:], row[:, :-1] + wrong * (_ERROR + 1), out=best[:, 1:])
        # Any number of insertions after each, without a loop over them.
        row = np.minimum.accumulate(best - inserted, axis=1) + inserted
        found = np.where(lengths[:, 0] == place + 1, row[lines, lengths[:, 1]], found)
    return found


def _padded(rows: Sequence[list[int]], fill: int) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded
