"""Vectors of words in the text format of word2vec, GloVe and fastText."""

import re
import unicodedata
from collections.abc import Collection, Iterator

import numpy as np

from .errors import InputError, Notice
from .reading import Path, read_lines
from .tokenizer import Tokenizer

# Shape letters: N words, D numbers of a vector.

# The first line of word2vec and fastText: how many words, how wide.
_HEADER = re.compile(r"\d+ \d+", flags=re.ASCII)
# No line of word vectors is longer than this many numbers.
_MAX_WIDTH = 100_000
# What float32 can hold.
_LARGEST = 3e38
_SPACE = "\u2581"


def read_word_vectors(
    path: Path, words: Collection[str] | None = None, *, notice: Notice | None = None
) -> tuple[dict[str, np.ndarray], int]:
    """Reads the vectors of some words from a file with a word and its numbers on each line.

    The file is read as a stream, so it may be larger than memory. Numbers of words that
    are not asked for are counted, but not looked at.

    Args:
        path: Plain or .gz; with or without word2vec's first line of two counts.
            Between words and numbers are spaces or tabs.
        words: Those wanted, a set best; all by default. Words of the file are brought to
            NFKC before they are compared, as a `Tokenizer` does with text; of those
            that come twice, as some do then, the first is taken.
        notice: As for `read_lines`. Bytes that are not UTF-8 are replaced: such files
            often have some.

    Returns:
        The vectors found by word, float32 `(D,)`, and the width D of all in the file.

    Raises:
        InputError: As `read_lines` does; for an empty file; for a line of another width
            or with something that is no finite number, with the line; and for a file
            with fewer vectors than its first line says.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "vectors.txt"
    ...     _ = path.write_text("2 3\\ndog 1 0 0.5\\ncat 0 1 0\\n")
    ...     vectors, width = read_word_vectors(path, {"dog", "cow"})
    >>> {word: vector.tolist() for word, vector in vectors.items()}, width
    ({'dog': [1.0, 0.0, 0.5]}, 3)
    """
    lines = _lines(path, notice)
    width, promised, first = _begin(path, lines)
    found: dict[str, np.ndarray] = {}
    count = 0
    if promised is None:
        count += _take(found, words, first, width, f"{path}:1")
    for number, line in enumerate(lines, 2):
        count += _take(found, words, line, width, f"{path}:{number}")
    if promised is not None and count < promised:
        raise InputError(
            f"{path}: {count:,} vectors, its first line says {promised:,}: it is cut off, copy it "
            "again"
        )
    return found, width


def vector_width(path: Path) -> int:
    """How many numbers a vector of a file has, by its first line.

    Args:
        path: As for `read_word_vectors`.

    Raises:
        InputError: A file that cannot be read, or does not begin with a vector.
    """
    return _begin(path, _lines(path, None))[0]


def piece_vectors(
    tokenizer: Tokenizer, path: Path, *, notice: Notice | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of a file for the tokens of a vocabulary that are words of the file.

    A token stands for the word that is its text, without the mark of a space before it;
    where the file has no such word, for the same in lower case.

    Args:
        tokenizer: The vocabulary.
        path, notice: As for `read_word_vectors`.

    Returns:
        The ids found, ascending, int64 `(N,)`, and their vectors, float32 `(N, D)`.

    Raises:
        InputError: As `read_word_vectors` does.

    Example:

    >>> import pathlib, tempfile
    >>> tokenizer = Tokenizer.train(["dog cat dog cat Dog dogs"] * 9, size=280)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "vectors.txt"
    ...     _ = path.write_text("dog 1 0\\ncow 0 1\\n")
    ...     ids, vectors = piece_vectors(tokenizer, path)
    >>> [tokenizer.pieces[id].text for id in ids], vectors.tolist()
    (['▁dog'], [[1.0, 0.0]])
    """
    words = {
        id: piece.text.removeprefix(_SPACE)
        for id, piece in enumerate(tokenizer.pieces)
        if piece.is_text and piece.text != _SPACE
    }
    wanted = set(words.values())
    vectors, width = read_word_vectors(
        path, wanted | {word.lower() for word in wanted}, notice=notice
    )
    rows = {
        id: vectors[word] if word in vectors else vectors[word.lower()]
        for id, word in words.items()
        if word in vectors or word.lower() in vectors
    }
    matrix = np.zeros((len(rows), width), np.float32)
    for place, row in enumerate(rows.values()):
        matrix[place] = row
    return np.array(list(rows), np.int64), matrix


def _lines(path: Path, notice: Notice | None) -> Iterator[str]:
    lines = read_lines(path, errors="replace", notice=notice)
    return (line.replace("\t", " ").rstrip(" ") for line in lines)


def _begin(path: Path, lines: Iterator[str]) -> tuple[int, int | None, str]:
    """The width, how many vectors the first line promises if it says so, and that line."""
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path}: empty, it has no word with a vector")
    if _HEADER.fullmatch(first):
        promised, width = map(int, first.split(" "))
    else:
        promised, width = None, first.count(" ")
    if not 1 <= width <= _MAX_WIDTH:
        raise InputError(
            f"{path}:1: received {width:,} numbers behind a word, expected a word and its vector"
        )
    if promised is None:
        # A text of another kind shows itself here.
        _vector(first.rsplit(" ", width)[1:], f"{path}:1")
    return width, promised, first


def _take(
    found: dict[str, np.ndarray],
    words: Collection[str] | None,
    line: str,
    width: int,
    where: str,
) -> int:
    """Notes the vector of a line if it is wanted; returns how many vectors the line has."""
    if not line:
        return 0
    spaces = line.count(" ")
    if spaces < width:
        raise InputError(
            f"{where}: received {spaces:,} numbers behind a word, expected {width:,} as before"
        )
    # In some files a word has a space in it.
    word = line[: line.index(" ")] if spaces == width else line.rsplit(" ", width)[0]
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word)
    if (words is None or word in words) and word not in found:
        found[word] = _vector(line.rsplit(" ", width)[1:], where)
    return 1


def _vector(numbers: list[str], where: str) -> np.ndarray:
    try:
        vector = np.array([float(number) for number in numbers])
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    # NaN is not below it either.
    if not (np.abs(vector) < _LARGEST).all():
        raise InputError(f"{where}: a vector with a number that is not finite, or too large")
    return vector.astype(np.float32)
