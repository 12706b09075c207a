"""The units of a vocabulary, chosen from the text."""

from __future__ import annotations

from typing import NamedTuple

from .learning import Kind
from .normalization import Form
from .statistics import LineStatistics

# A closed set: few words, each seen many times.
_MAX_WORDS = 1_000
_SEEN = 20
_MAX_SYMBOL = 3
# An alphabet, after decomposition.
_MAX_ALPHABET = 500
# Short lines: words of up to 30 characters, or a few words in up to 20.
_MAX_WORD, _MAX_LINE, _MAX_WORDS_IN_LINE = 30, 20, 4
# Decomposition is worth longer sequences where it makes the alphabet this many times smaller.
_SMALLER = 3


class Units(NamedTuple):
    """The units of a vocabulary.

    Attributes:
        kind: The kind of vocabulary.
        normalization: The normalization form.
        reason: The reason, as part of a message.
    """

    kind: Kind
    normalization: Form
    reason: str


def choose_units(statistics: LineStatistics, *, is_target: bool = True) -> Units:
    """Chooses the units of one side's vocabulary.

    Words where they are a small closed set of symbols that come again and again, such as
    phones. Of a source they must also be short, because new words will come there. Characters where
    lines are short and the alphabet is small. Subwords otherwise.

    Args:
        statistics: Of the training lines of that side.
        is_target: Whether the text is to be written, not read.

    Example:

    >>> from keras_seq.text import LineCounter
    >>> counter = LineCounter()
    >>> for line in ["k a t", "t a k a", "a t a"] * 30:
    ...     counter.add(line)
    >>> choose_units(counter.statistics).kind
    'word'
    """
    counts = statistics
    words, characters = counts.words_per_line, counts.characters_per_line
    if (
        words > 1
        and (is_target or characters <= words * (_MAX_SYMBOL + 1))
        and counts.distinct_words <= _MAX_WORDS
        and counts.words >= _SEEN * counts.distinct_words
    ):
        return Units("word", "nfc", f"{counts.distinct_words:,} different words, each seen often")
    short = (words < 2 and characters <= _MAX_WORD) or (
        words <= _MAX_WORDS_IN_LINE and characters <= _MAX_LINE
    )
    if short and counts.distinct_parts <= _MAX_ALPHABET:
        reason = f"short lines ({characters:.1f} characters on average)"
        if counts.distinct_parts * _SMALLER <= counts.distinct_characters:
            return Units(
                "char",
                "nfd",
                f"{reason}, {counts.distinct_characters:,} different characters of "
                f"{counts.distinct_parts:,} parts",
            )
        return Units(
            "char", "nfc", f"{reason}, {counts.distinct_characters:,} different characters"
        )
    return Units("unigram", "nfc", f"{words:.1f} words and {characters:.0f} characters a line")
