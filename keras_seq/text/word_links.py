"""Converts word alignments to token alignments."""

import itertools
import re
from collections.abc import Iterable, Iterator

from .tokenizer import Tokenizer

TokenLinks = list[tuple[int, int]]

# Matches the same words as `str.split`.
_WORD = re.compile(r"\S+")


def tokens_of_words(tokenizer: Tokenizer, lines: list[str]) -> Iterator[list[list[int]]]:
    """Yields, for each line, the token positions of each of its words.

    The words are those of `str.split`. A word that normalization deletes, such as control
    characters, has no tokens.

    Example:

    >>> tokenizer = Tokenizer.train(["a dog sees a cat"] * 9, size=300)
    >>> line = "dogs see"
    >>> [words] = tokens_of_words(tokenizer, [line])
    >>> ids = tokenizer.encode([line])[0]
    >>> [tokenizer.decode([[ids[token] for token in tokens]])[0] for tokens in words]
    ['dogs', 'see']
    """
    words = [line.split() for line in lines]
    distinct = list(dict.fromkeys(itertools.chain.from_iterable(words)))
    # Most words have the same tokens in a line as alone.
    alone = dict(zip(distinct, tokenizer.encode(distinct), strict=True))
    for line, line_words, ids in zip(lines, words, tokenizer.encode(lines), strict=True):
        pieces = [alone[word] for word in line_words]
        if list(itertools.chain.from_iterable(pieces)) == ids:
            ends = itertools.accumulate(map(len, pieces), initial=0)
            yield [list(range(*bounds)) for bounds in itertools.pairwise(ends)]
        else:
            offsets = tokenizer.offsets([line])[0]
            yield tokens_by_offsets(line, offsets, [bool(ids) for ids in pieces])


def tokens_by_offsets(
    line: str, offsets: Iterable[tuple[int, int]], has_tokens: list[bool] | None = None
) -> list[list[int]]:
    """Returns the token positions of each word of a line, from the start and end of each token.

    White space belongs to the next word. `has_tokens` is True for words that have tokens; by
    default, all words have tokens.

    Example:

    >>> tokens_by_offsets("ab c", [(0, 1), (1, 2), (2, 3), (3, 4)])
    [[0, 1], [2, 3]]
    """
    if has_tokens is None:
        has_tokens = [True] * len(line.split())
    result: list[list[int]] = [[] for _ in has_tokens]
    spans = zip(result, (match.span() for match in _WORD.finditer(line)), has_tokens, strict=True)
    # The span of a token may cover a deleted word, which has no tokens.
    words = [(tokens, *span) for tokens, span, has_any in spans if has_any]
    first = 0
    for token, (begin, end) in enumerate(offsets):
        # A zero-width token precedes the character that it is a part of.
        while first < len(words) - 1 and words[first][2] <= begin:
            first += 1
        for tokens, word_begin, _ in words[first:]:
            if tokens is words[first][0] or word_begin < end:
                tokens.append(token)
            else:
                break
    return result


def link_tokens(
    links: Iterable[tuple[int, int]], source: list[list[int]], target: list[list[int]]
) -> tuple[TokenLinks, int]:
    """Links all tokens of two words if the words are linked.

    `links` are pairs `(source word, target word)`; `source` and `target` are from
    `tokens_of_words`. Returns distinct pairs `(source token, target token)`, ascending, and the
    number of links to a word without tokens.
    """
    token_links: set[tuple[int, int]] = set()
    lost = 0
    for source_word, target_word in links:
        source_tokens, target_tokens = source[source_word], target[target_word]
        lost += not (source_tokens and target_tokens)
        token_links.update(itertools.product(source_tokens, target_tokens))
    return sorted(token_links), lost
