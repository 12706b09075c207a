"""What is seen of a bad translation without a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_SHARE_OF_A_COPY = 0.8
_LONGEST_REPETITION = 8
_TIMES = 3


def is_copy(source: str, text: str) -> bool:
    """Whether a translation is its source, or nearly.

    Nearly is: of the words of the source that have a letter, each as often as it comes, a
    share of at least 0.8 is in the translation.

    Example:

    >>> is_copy("A dog runs in 2021", "a dog runs"), is_copy("A dog runs", "A dog runs .")
    (False, True)

    Reference:
        Ott et al., "Analyzing Uncertainty in Neural Machine Translation", ICML 2018,
        https://arxiv.org/abs/1803.00047, which tells copies by shared words, too.
    """
    if not source.strip():
        return False
    words, found = Counter(_words(source)), Counter(_words(text))
    count = words.total()
    if not count:
        return source.split() == text.split()
    return (words & found).total() >= _SHARE_OF_A_COPY * count


def repeats(pieces: Sequence[str]) -> bool:
    """Whether 1 to 8 pieces of a text come three times in a row, or more often.

    A number may: of digits alone nothing is a repetition.

    Args:
        pieces: What the tokens of a translation stand for.

    Example:

    >>> repeats(["a", "b", "a", "b", "a", "b"]), repeats(["a", "b", "a", "b", "c"])
    (True, False)
    >>> repeats(["2", "0", "0", "0"])
    False
    """
    for size in range(1, _LONGEST_REPETITION + 1):
        run = 0
        for i in range(size, len(pieces)):
            run = run + 1 if pieces[i] == pieces[i - size] else 0
            if run >= (_TIMES - 1) * size and not _is_number(pieces[i - size + 1 : i + 1]):
                return True
    return False


def _words(text: str) -> list[str]:
    return [word for word in text.split() if any(map(str.isalpha, word))]


def _is_number(pieces: Sequence[str]) -> bool:
    return all(piece.strip("\u2581").isdigit() for piece in pieces)
