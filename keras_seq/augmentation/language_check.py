"""Tells whether text is in the source language of a run, by the validation text of the run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from keras_seq.cleaning import CorpusStatistics, foreign_texts
from keras_seq.run import Run
from keras_seq.text import Example, InputError, plain_sources, read_lines

# Lines of a text that are judged, and the least number of them.
_COMPARED, _MIN_LINES = 1000, 10
# Validation pairs that are needed to find text in the language of the other side, and in a third
# language. By 100 pairs of Multi30k, 6 to 23 % of the lines of other English text look foreign, and
# 82 to 91 % of the lines of manuals in eight other languages. By 10 pairs, hardly any do.
_MIN_PAIRS, _MIN_PAIRS_OF_THIRD = 10, 100
# Standard errors by which the share of foreign lines must be above one half.
_ERRORS = 3.0


def validation_statistics(run: Run) -> CorpusStatistics | None:
    """Returns the statistics of the validation text of a run; None if it has none."""
    if not run.has_valid_lines:
        return None
    sources, targets = run.valid_lines()
    plain = plain_sources(sources, run.source_tokenizer)
    return CorpusStatistics(map(Example, plain, targets))


def require_source_language(run: Run, statistics: CorpusStatistics, names: Sequence[str]) -> None:
    """Raises InputError if most lines of a file are not in the source language of the run.

    A line is foreign by the rule `language` of `keras_seq.cleaning`. The share of foreign lines
    must be above one half by three standard errors. Where both sides are in one language, as in the
    correction of spelling, no line is in the language of the other side.

    Args:
        run: The run.
        statistics: Statistics of its validation text.
        names: Files in the source language of the run.
    """
    side, other = statistics.source, statistics.target
    if side is None or statistics.num_examples < _MIN_PAIRS:
        return
    advice = "--any-language accepts it"
    for name in names:
        lines = list(itertools.islice(_plain_lines(run, name), _COMPARED))
        found = foreign_texts(lines, side, other, statistics.num_letters)
        if _are_most(found.other, found.identified):
            raise InputError(
                f"{name}: looks like the target language of {run.path}, expected its source "
                "language: for back-translation, train a run in the opposite direction; or "
                f"{advice}"
            )
        has_third = statistics.num_examples >= _MIN_PAIRS_OF_THIRD
        if has_third and _are_most(found.other | found.third, found.identified):
            raise InputError(
                f"{name}: looks like neither language of {run.path}, expected its source "
                f"language; {advice}"
            )


def _plain_lines(run: Run, name: str) -> Iterator[str]:
    return (
        plain
        for line in read_lines(name)
        for plain in plain_sources([line], run.source_tokenizer)
        if plain.strip()
    )


def _are_most(foreign: np.ndarray, identified: np.ndarray) -> bool:
    """Returns whether more than half of the identified lines are foreign, beyond chance."""
    count = int(identified.sum())
    least = count / 2 + _ERRORS * math.sqrt(count) / 2
    return count >= _MIN_LINES and int(foreign.sum()) > least
