"""Detects symptoms of a bad translation without a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_COPIED_SHARE = 0.8
_MAX_REPEATED_PIECES = 8
_MIN_REPETITIONS = 3


def is_copy(source: str, text: str) -> bool:
    """Returns True if a translation copies at least 0.8 of the words of its source.

    Only words with a letter count, each occurrence on its own.

    Example:

    >>> is_copy("A dog runs in 2021", "a dog runs"), is_copy("A dog runs", "A dog runs .")
    (False, True)

    Reference:
        Ott et al., "Analyzing Uncertainty in Neural Machine Translation", ICML 2018,
        https://arxiv.org/abs/1803.00047, which also detects copies by shared words.
    """
    if not source.strip():
        return False
    words, copied = Counter(_words(source)), Counter(_words(text))
    count = words.total()
    if not count:
        return source.split() == text.split()
    return (words & copied).total() >= _COPIED_SHARE * count


def repeats(pieces: Sequence[str]) -> bool:
    """Returns True if 1 to 8 consecutive pieces occur at least three times in a row.

    The pieces are the tokens of a translation as text. Digits of a number do not count.

    Example:

    >>> repeats(["a", "b", "a", "b", "a", "b"]), repeats(["a", "b", "a", "b", "c"])
    (True, False)
    >>> repeats(["2", "0", "0", "0"])
    False
    """
    for size in range(1, _MAX_REPEATED_PIECES + 1):
        run = 0
        for i in range(size, len(pieces)):
            run = run + 1 if pieces[i] == pieces[i - size] else 0
            if run >= (_MIN_REPETITIONS - 1) * size and not _is_number(
                pieces[i - size + 1 : i + 1]
            ):
                return True
    return False


def _words(text: str) -> list[str]:
    return [word for word in text.split() if any(map(str.isalpha, word))]


def _is_number(pieces: Sequence[str]) -> bool:
    return all(piece.strip("\u2581").isdigit() for piece in pieces)
