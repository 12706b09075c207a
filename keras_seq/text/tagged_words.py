"""Words with a tag each: how a line is cut into words, and words into tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .special_ids import UNK_ID
from .tokenizer import Tokenizer

_SPACES = {ord(space): " " for space in "\t\n\v\f\r"}


class WordTokens(NamedTuple):
    """The tokens of a line, cut word by word.

    Attributes:
        ids: Of all words, one behind the other.
        begins: The place in `ids` of the first token of each word.
    """

    ids: list[int]
    begins: list[int]


def words_of(line: str) -> list[str]:
    """The words of a line: what spaces part, and other white space of ASCII.

    No-break spaces part none: who wrote them wanted one word, and has one tag for it.
    """
    return [word for word in line.translate(_SPACES).split(" ") if word]


def word_tokens(tokenizer: Tokenizer, lines: Sequence[str]) -> list[WordTokens]:
    """The tokens of some lines, each word cut by itself.

    So each word has a first token, whatever normalization makes of what is around it; a word
    of which nothing is left, as of a zero-width space, is one unknown token.

    Args:
        tokenizer: Of the source.
        lines: Texts.

    Example:

    >>> tokenizer = Tokenizer.train(["a dog", "a cat"], size=270)
    >>> tokens = word_tokens(tokenizer, ["a dog"])[0]
    >>> tokenizer.decode([tokens.ids]), len(tokens.begins)
    (['a dog'], 2)
    """
    words = [words_of(line) for line in lines]
    pieces = iter(tokenizer.encode([word for row in words for word in row]))
    found = []
    for row in words:
        ids: list[int] = []
        begins = []
        for _ in row:
            begins.append(len(ids))
            ids += next(pieces) or [UNK_ID]
        found.append(WordTokens(ids, begins))
    return found
