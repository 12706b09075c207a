"""Vectors of words in the text format of word2vec, GloVe and fastText."""

import math
import re
from collections.abc import Collection

from .errors import InputError
from .reading import Notice, Path, read_lines

# The first line of word2vec and fastText: how many words, how wide.
_HEADER = re.compile(r"\d+ \d+ *", flags=re.ASCII)


def read_word_vectors(
    path: Path, words: Collection[str], *, notice: Notice | None = None
) -> tuple[dict[str, list[float]], int]:
    """Reads the vectors of some words from a file with a word and its numbers on each line.

    The file is read as a stream, so it may be larger than memory. Of a word that comes
    twice the first is taken. Numbers of words that are not asked for are not looked at.

    Args:
        path: Plain or .gz; with or without word2vec's first line of two counts.
        words: Those wanted.
        notice: As for `read_lines`.

    Returns:
        The vectors found by word, and the width of all in the file.

    Raises:
        InputError: As `read_lines` does, for an empty file, and for a line of another
            width or with something that is no finite number, with the line.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "vectors.txt"
    ...     _ = path.write_text("2 3\\ndog 1 0 0.5\\ncat 0 1 0\\n")
    ...     read_word_vectors(path, {"dog", "cow"})
    ({'dog': [1.0, 0.0, 0.5]}, 3)
    """
    found: dict[str, list[float]] = {}
    width = 0
    for number, line in enumerate(read_lines(path, errors="replace", notice=notice), 1):
        line = line.rstrip(" ")
        if number == 1 and _HEADER.fullmatch(line):
            width = int(line.split(" ")[1])
            continue
        if not width:
            width = line.count(" ")
        # From the right: in some files a word has a space in it.
        word, *numbers = line.rsplit(" ", width) if width else (line,)
        if not width or len(numbers) != width:
            raise InputError(
                f"{path}:{number}: received {len(numbers):,} numbers behind a word, expected "
                + (f"{width:,} as before" if width else "a word and its vector")
            )
        if word in words and word not in found:
            found[word] = _vector(numbers, f"{path}:{number}")
    if not width:
        raise InputError(f"{path}: empty, it has no word with a vector")
    return found, width


def _vector(numbers: list[str], where: str) -> list[float]:
    try:
        vector = [float(number) for number in numbers]
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    if not all(map(math.isfinite, vector)):
        raise InputError(f"{where}: a vector with a number that is not finite")
    return vector
