"""From links between words to links between the tokens that the words were cut into."""

import itertools
import re
from collections.abc import Iterable, Iterator

from .tokenizer import Tokenizer

TokenLinks = list[tuple[int, int]]

# As `str.split` finds them.
_WORD = re.compile(r"\S+")


def tokens_of_words(tokenizer: Tokenizer, lines: list[str]) -> Iterator[list[list[int]]]:
    """The places of the tokens of each word, for each line.

    Args:
        tokenizer: What encodes the lines.
        lines: Strings.

    Returns:
        An iterator over lists, one for each line, with a list for each word that
        `str.split` finds in it. A word that normalisation takes away, as one of control
        characters, has no tokens.

    Example:

    >>> tokenizer = Tokenizer.train(["a dog sees a cat"] * 9, size=300)
    >>> line = "dogs see"
    >>> [found] = tokens_of_words(tokenizer, [line])
    >>> ids = tokenizer.encode([line])[0]
    >>> [tokenizer.decode([[ids[token] for token in tokens]])[0] for tokens in found]
    ['dogs', 'see']
    """
    words = [line.split() for line in lines]
    different = list(dict.fromkeys(itertools.chain.from_iterable(words)))
    # By far most words are cut in a line as they are alone.
    alone = dict(zip(different, tokenizer.encode(different), strict=True))
    for line, its_words, ids in zip(lines, words, tokenizer.encode(lines), strict=True):
        pieces = [alone[word] for word in its_words]
        if list(itertools.chain.from_iterable(pieces)) == ids:
            ends = itertools.accumulate(map(len, pieces), initial=0)
            yield [list(range(*bounds)) for bounds in itertools.pairwise(ends)]
        else:
            offsets = tokenizer.offsets([line])[0]
            yield tokens_by_offsets(line, offsets, [bool(ids) for ids in pieces])


def tokens_by_offsets(
    line: str, offsets: Iterable[tuple[int, int]], has_tokens: list[bool] | None = None
) -> list[list[int]]:
    """The places of the tokens of each word of a line.

    Args:
        line: A string.
        offsets: For each token the first of its characters and the one behind the last.
        has_tokens: Whether there are any of each word that `str.split` finds; all by default.

    Returns:
        A list for each word. White space belongs to the word behind it.

    Example:

    >>> tokens_by_offsets("ab c", [(0, 1), (1, 2), (2, 3), (3, 4)])
    [[0, 1], [2, 3]]
    """
    if has_tokens is None:
        has_tokens = [True] * len(line.split())
    found: list[list[int]] = [[] for _ in has_tokens]
    spans = zip(found, (match.span() for match in _WORD.finditer(line)), has_tokens, strict=True)
    # Tokens go past what normalisation takes away: to such a word none belongs.
    words = [(tokens, *span) for tokens, span, has_any in spans if has_any]
    first = 0
    for token, (begin, end) in enumerate(offsets):
        # A token of no width stands before the character that it is a part of.
        while first < len(words) - 1 and words[first][2] <= begin:
            first += 1
        for tokens, word_begin, _ in words[first:]:
            if tokens is words[first][0] or word_begin < end:
                tokens.append(token)
            else:
                break
    return found


def link_tokens(
    links: Iterable[tuple[int, int]], source: list[list[int]], target: list[list[int]]
) -> tuple[TokenLinks, int]:
    """Links every token of a word with every token of the words that it is linked to.

    Args:
        links: `(source word, target word)`.
        source, target: From `tokens_of_words`.

    Returns:
        `(source token, target token)`, each once, ascending; and how many links were to a
        word without tokens.
    """
    found: set[tuple[int, int]] = set()
    lost = 0
    for source_word, target_word in links:
        tokens = source[source_word], target[target_word]
        lost += not (tokens[0] and tokens[1])
        found.update((one, other) for one in tokens[0] for other in tokens[1])
    return sorted(found), lost
