"""Words and tokens for tagging, with one tag per word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .special_ids import UNK_ID
from .tokenizer import Tokenizer
from .word_characters import WORD_CHARACTERS, word_characters

_SPACES = {ord(space): " " for space in "\t\n\v\f\r"}


class WordTokens(NamedTuple):
    """The token ids of a line whose words are encoded separately.

    `begins` has the position in `ids` of the first token of each of the `words`.
    """

    ids: list[int]
    begins: list[int]
    words: list[str]

    def first(self, count: int) -> WordTokens:
        """Returns the first tokens, at most `count`, of words of one token each."""
        return WordTokens(self.ids[:count], self.begins[:count], self.words[:count])

    def characters(self) -> list[int]:
        """Returns `word_characters` of each word at its first token, and zeros at other tokens."""
        rows = [[0] * WORD_CHARACTERS for _ in self.ids]
        for begin, word in zip(self.begins, self.words, strict=True):
            rows[begin] = word_characters(word)
        return [point for row in rows for point in row]


def words_of(line: str) -> list[str]:
    """Splits a line into words at ASCII white space.

    A no-break space does not separate words, so the parts share one tag.
    """
    return [word for word in line.translate(_SPACES).split(" ") if word]


def word_tokens(
    tokenizer: Tokenizer, lines: Sequence[str], *, whole_words: bool = False
) -> list[WordTokens]:
    """Encodes each word of each line separately, so that every word has a first token.

    A word that normalization deletes, such as a zero-width space, becomes one unknown token. If
    `whole_words`, a word of several tokens does too, for models that read the characters of words.

    Example:

    >>> tokenizer = Tokenizer.train(["a dog", "a cat"], size=270)
    >>> tokens = word_tokens(tokenizer, ["a dog"])[0]
    >>> tokenizer.decode([tokens.ids]), len(tokens.begins)
    (['a dog'], 2)
    """
    words = [words_of(line) for line in lines]
    encoded = iter(tokenizer.encode([word for row in words for word in row]))
    result = []
    for row in words:
        ids: list[int] = []
        begins = []
        for _ in row:
            begins.append(len(ids))
            tokens = next(encoded)
            is_unknown = not tokens or (whole_words and len(tokens) > 1)
            ids += [UNK_ID] if is_unknown else tokens
        result.append(WordTokens(ids, begins, row))
    return result
