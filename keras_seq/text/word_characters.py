"""Characters of words, as numbers for a model."""

from __future__ import annotations

from collections.abc import Sequence

# The characters of a word that are kept at each of its ends.
WORD_END = 8
# The numbers that represent a word.
WORD_CHARACTERS = 2 * WORD_END


def word_characters(word: str) -> list[int]:
    """Returns the code points of the first 8 and of the last 8 characters of a word.

    The first half has 0 after a shorter word, the second half has 0 before it, so that beginnings
    and endings of all words are at the same places.

    Example:

    >>> word_characters("dog")
    [100, 111, 103, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 111, 103]
    """
    first, last = [*map(ord, word[:WORD_END])], [*map(ord, word[-WORD_END:])]
    return first + [0] * (WORD_END - len(first)) + [0] * (WORD_END - len(last)) + last


def shown_word(points: Sequence[int]) -> str:
    """Returns a word of `word_characters`; of a long one, its beginning and its ending.

    Example:

    >>> shown_word(word_characters("dog")), shown_word(word_characters("internationalization"))
    ('dog', 'internat…lization')
    """
    first, last = (
        "".join(chr(point) for point in points[i:][:WORD_END] if point) for i in (0, WORD_END)
    )
    return first if first == last else f"{first}…{last}"
