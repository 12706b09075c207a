"""Chooses the units of a vocabulary from statistics of the text."""

from __future__ import annotations

from typing import NamedTuple

from .learning import Kind
from .normalization import Form
from .statistics import LineStatistics

# Words form a closed set if there are few words and each word is frequent.
_MAX_WORDS = 1_000
_MIN_FREQUENCY = 20
_MAX_SYMBOL = 3
# The largest alphabet, after canonical decomposition.
_MAX_ALPHABET = 500
# Short lines: single words of up to 30 characters, or up to 4 words in 20 characters.
_MAX_WORD, _MAX_LINE, _MAX_WORDS_IN_LINE = 30, 20, 4
# Decomposition makes sequences longer; it must shrink the alphabet by this factor.
_SMALLER = 3


class Units(NamedTuple):
    """The kind and normalization form of a vocabulary, and the reason for the choice."""

    kind: Kind
    normalization: Form
    reason: str


def choose_transcript_units(statistics: LineStatistics) -> Units:
    """Chooses the units of the texts of recordings: a closed set of words, or characters.

    A closed set, such as digits or commands, is learned faster as words.
    """
    if _is_closed_set(statistics):
        reason = f"{statistics.distinct_words:,} different words, each heard often"
        return Units("word", "nfc", reason)
    return Units("char", "nfc", "recordings of open text")


def _is_closed_set(statistics: LineStatistics) -> bool:
    """Tests if there are few different words, each of them frequent."""
    return (
        statistics.distinct_words <= _MAX_WORDS
        and statistics.words >= _MIN_FREQUENCY * statistics.distinct_words
    )


def choose_units(statistics: LineStatistics, *, is_target: bool = True) -> Units:
    """Chooses the units of the vocabulary of one side from statistics of its training lines.

    Words are chosen if they form a small closed set of frequent symbols, such as phones. The words
    of a source must also be short, because a source may contain new words. Characters are chosen if
    lines are short and the alphabet is small. Subwords are chosen otherwise.

    Example:

    >>> from keras_seq.text import LineCounter
    >>> counter = LineCounter()
    >>> for line in ["k a t", "t a k a", "a t a"] * 30:
    ...     counter.add(line)
    >>> choose_units(counter.statistics).kind
    'word'
    """
    words, characters = statistics.words_per_line, statistics.characters_per_line
    if (
        words > 1
        and (is_target or characters <= words * (_MAX_SYMBOL + 1))
        and _is_closed_set(statistics)
    ):
        reason = f"{statistics.distinct_words:,} different words, each seen often"
        return Units("word", "nfc", reason)
    short = (words < 2 and characters <= _MAX_WORD) or (
        words <= _MAX_WORDS_IN_LINE and characters <= _MAX_LINE
    )
    if short and statistics.distinct_parts <= _MAX_ALPHABET:
        reason = (
            f"short lines ({characters:.1f} characters on average), "
            f"{statistics.distinct_characters:,} different characters"
        )
        if statistics.distinct_parts * _SMALLER <= statistics.distinct_characters:
            return Units("char", "nfd", f"{reason} of {statistics.distinct_parts:,} parts")
        return Units("char", "nfc", reason)
    return Units("unigram", "nfc", f"{words:.1f} words and {characters:.0f} characters per line")
