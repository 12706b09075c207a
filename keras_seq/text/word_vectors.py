"""Reads word vectors in the text format of word2vec, GloVe and fastText."""

import itertools
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterator

import numpy as np

from .errors import InputError, Notice
from .normalization import SPACE_MARK
from .reading import Path, read_lines
from .tokenizer import Tokenizer

# Shapes: N words, D dimensions.

# The first line of word2vec and fastText files: number of words and dimensions.
_HEADER = re.compile(r"\d{1,15} \d{1,9}", flags=re.ASCII)
_MAX_WIDTH = 100_000
# Just below the maximum of float32.
_MAX_VALUE = 3e38
# Bytes of words and vectors between two checks of the memory.
_CHECKED_BYTES = 4_000_000


def read_word_vectors(
    path: Path,
    words: Collection[str] | None = None,
    *,
    notice: Notice | None = None,
    check_bytes: Callable[[int], None] | None = None,
) -> tuple[dict[str, np.ndarray], int]:
    """Reads the vectors of some words from a file with one word and its vector per line.

    The file is read as a stream, so it may be larger than memory. The first line may have two
    counts, as in word2vec. Spaces or tabs separate the word and the numbers. Only `words` are read,
    preferably a set; None reads all. The words of the file are normalized to NFKC; of equal words,
    the first is used. Bytes that are not UTF-8, common in such files, are replaced. `check_bytes`
    receives the size of the words and vectors kept so far, about every 4 MB.

    Returns the vectors by word, float32 `(D,)`, and D. Raises InputError like `read_lines`; if the
    file is empty; if a line has a different number of values or a value that is not a finite
    number; or if the file has fewer vectors than its first line says.

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
    width, expected, first = _read_first(path, lines)
    vectors: dict[str, np.ndarray] = {}
    count = kept = checked = 0
    rows = lines if expected is not None else itertools.chain([first], lines)
    for number, line in enumerate(rows, 1 if expected is None else 2):
        count += bool(line)
        kept += _add(vectors, words, line, width, f"{path}:{number}")
        if check_bytes is not None and kept - checked >= _CHECKED_BYTES:
            check_bytes(kept)
            checked = kept
    if expected is not None and count < expected:
        raise InputError(
            f"{path}: {count:,} vectors, its first line says {expected:,}: it is cut off, copy it "
            "again"
        )
    return vectors, width


def vector_width(path: Path) -> int:
    """Reads the number of dimensions from the first line of a file of word vectors."""
    return _read_first(path, _lines(path, None))[0]


def vector_words(path: Path, count: int) -> Iterator[str]:
    """Yields the first `count` words of a file of word vectors, the most frequent by custom."""
    lines = _lines(path, None)
    _, expected, first = _read_first(path, lines)
    rows = lines if expected is not None else itertools.chain([first], lines)
    for line in itertools.islice(rows, count):
        yield line.partition(" ")[0]


def piece_vectors(
    tokenizer: Tokenizer, path: Path, *, notice: Notice | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Reads vectors for the tokens of a vocabulary from a file of word vectors.

    The word of a token is its text without the space mark. If the file lacks the word, the
    lowercased word is used. Returns the ids of the tokens with a vector, ascending, int64 `(N,)`,
    and the vectors, float32 `(N, D)`.

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
        id: piece.text.removeprefix(SPACE_MARK)
        for id, piece in enumerate(tokenizer.pieces)
        if piece.is_text and piece.text != SPACE_MARK
    }
    wanted = {form for word in words.values() for form in (word, word.lower())}
    vectors, width = read_word_vectors(path, wanted, notice=notice)
    forms = {id: word if word in vectors else word.lower() for id, word in words.items()}
    rows = {id: vectors[form] for id, form in forms.items() if form in vectors}
    matrix = np.array(list(rows.values()), np.float32).reshape(len(rows), width)
    return np.array(list(rows), np.int64), matrix


def _lines(path: Path, notice: Notice | None) -> Iterator[str]:
    lines = read_lines(path, errors="replace", notice=notice)
    return (line.replace("\t", " ").rstrip(" ") for line in lines)


def _read_first(path: Path, lines: Iterator[str]) -> tuple[int, int | None, str]:
    """Returns D, the number of vectors (None without a header), and the first line."""
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path}: empty, it has no word with a vector")
    if _HEADER.fullmatch(first):
        expected, width = map(int, first.split(" "))
    else:
        expected, width = None, first.count(" ")
    if not 1 <= width <= _MAX_WIDTH:
        raise InputError(
            f"{path}:1: received {width:,} numbers after a word, expected a word and its vector"
        )
    if expected is None:
        # Raises an error if the file contains other text.
        _vector(first.rsplit(" ", width)[1:], f"{path}:1")
    return width, expected, first


def _add(
    vectors: dict[str, np.ndarray], words: Collection[str] | None, line: str, width: int, where: str
) -> int:
    """Adds the vector of a line if its word is in `words`; returns the bytes that are kept."""
    if not line:
        return 0
    spaces = line.count(" ")
    if spaces < width:
        raise InputError(
            f"{where}: received {spaces:,} numbers after a word, expected {width:,} as before"
        )
    # In some files, words contain spaces.
    word = line[: line.index(" ")] if spaces == width else line.rsplit(" ", width)[0]
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word)
    if word in vectors or (words is not None and word not in words):
        return 0
    vectors[word] = _vector(line.rsplit(" ", width)[1:], where)
    return 4 * width + sys.getsizeof(word)


def _vector(numbers: list[str], where: str) -> np.ndarray:
    try:
        vector = np.array([float(number) for number in numbers])
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    # The comparison is also False for NaN.
    if not (np.abs(vector) < _MAX_VALUE).all():
        raise InputError(f"{where}: a vector with a number that is not finite, or too large")
    return vector.astype(np.float32)
