"""Word vectors: lookup, files, nearest neighbors and analogies."""

from __future__ import annotations

import difflib
import gzip
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import IO, Any

import numpy as np

from keras_seq.process.memory import require_memory
from keras_seq.storage import atomic_file, open_regular, reason, size_on_disk
from keras_seq.storage.checkpoints.tensor_file import (
    TensorFileError,
    TensorSpec,
    read_tensors,
    write_tensors,
)
from keras_seq.text import InputError, Notice, read_word_vectors
from keras_seq.text.reading import Path, read_lines
from keras_seq.vectors.subwords import Subwords

# Suffix of the file of n-gram vectors.
PARTS = ".ngrams"
# Suggestions for an unknown word come from this many of the most frequent words.
_SUGGESTIONS_FROM = 50_000
# More characters than a number has, so that the size of a file says how many it has at least.
_MAX_DIGITS = 40
_ADVICE = "give a file of fewer vectors, such as the first lines of this one"


class WordVectors:
    """Words and their vectors.

    Shape letters: N words, D units.

    Args:
        words: The words, without duplicates.
        matrix: Float array `(N, D)`, one row per word.
        subwords: Vectors of character n-grams, for words that are not in `words`; or None.
        name: Name in messages, such as the file name.

    Raises:
        ValueError: If the number of rows differs from the number of words, or a word is repeated.

    Example:

    >>> vectors = WordVectors(["dog", "cat", "car"], np.array([[1, 0], [4, 1], [0, 1]]))
    >>> [word for word, _ in vectors.nearest("dog")]
    ['cat', 'car']
    >>> vectors["cat"].tolist()
    [4.0, 1.0]
    """

    def __init__(
        self,
        words: Sequence[str],
        matrix: np.ndarray,
        subwords: Subwords | None = None,
        name: str = "vectors",
    ) -> None:
        self.words = list(words)
        self.matrix = np.asarray(matrix, np.float32)
        self.subwords = subwords
        self.name = name
        if self.matrix.ndim != 2 or len(self.matrix) != len(self.words):
            raise ValueError(
                f"matrix: received shape {self.matrix.shape}, expected a row for each of "
                f"{len(self.words)} words"
            )
        self._places = {word: place for place, word in enumerate(self.words)}
        if len(self._places) < len(self.words):
            raise ValueError("words: received a word twice, expected distinct words")
        self._unit_rows: np.ndarray | None = None

    @classmethod
    def load(cls, path: Path, *, notice: Notice | None = None) -> WordVectors:
        """Reads a file in the text format of word2vec, GloVe or fastText.

        See `keras_seq.text.read_word_vectors` for the arguments. N-gram vectors are read from
        `PATH.ngrams` if this file exists. Raises InputError if a file is invalid, or does not fit
        into the memory.
        """
        _require_memory(path)
        vectors, _ = read_word_vectors(
            path, notice=notice, check_bytes=lambda size: _require_memory_of(size, path)
        )
        if not vectors:
            raise InputError(f"{path}: no word with a vector")
        name = "standard input" if str(path) == "-" else str(path)
        matrix = np.array(list(vectors.values()), np.float32)
        return cls(list(vectors), matrix, _read_parts(path, matrix.shape[1]), name)

    def save(self, path: Path) -> None:
        """Writes the text format: `N D`, then a word and its numbers on each line.

        The file is compressed if its name ends in `.gz`. Numbers have nine digits, which restores a
        float32 exactly. N-gram vectors are written to `PATH.ngrams` in the safetensors format;
        without n-gram vectors, an existing file of that name is deleted. Both files are written
        atomically. Raises InputError if a file cannot be written.
        """
        place = pathlib.Path(path)
        parts = place.with_name(place.name + PARTS)
        try:
            with atomic_file(place) as file:
                if place.name.endswith(".gz"):
                    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                        self._write(packed)
                else:
                    self._write(file)
                # If the disk is full, this raises before the old files are replaced.
                file.flush()
                if self.subwords is None:
                    parts.unlink(missing_ok=True)
                else:
                    words = self.subwords
                    sizes = np.array([words.min_ngram, words.max_ngram, words.buckets], np.int32)
                    tensors = {"places": words.places, "sizes": sizes, "vectors": words.vectors}
                    write_tensors(parts, tensors)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
            raise InputError(f"{place}: cannot be written: {reason(error)}") from None

    def _write(self, file: IO[bytes] | gzip.GzipFile) -> None:
        width = self.matrix.shape[1]
        file.write(f"{len(self.words)} {width}\n".encode())
        numbers = " ".join(["%.9g"] * width)
        for word, row in zip(self.words, self.matrix, strict=True):
            file.write(f"{word} {numbers % tuple(row.tolist())}\n".encode())

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        """Returns True if a word has a vector of its own or from its n-grams."""
        return self._find(word) is not None

    def __getitem__(self, word: str) -> np.ndarray:
        """Returns the vector of a word, float32 `(D,)`.

        Raises InputError if the word has no vector; the message suggests similar words.
        """
        vector = self._find(word)
        if vector is None:
            raise InputError(f"{self.name}: no vector for {word[:60]!r}{self._suggestion(word)}")
        return vector

    def nearest(
        self, word: str | np.ndarray, count: int = 10, *, without: Iterable[str] = ()
    ) -> list[tuple[str, float]]:
        """Finds the `count` words with the highest cosine similarity to a word or a vector `(D,)`.

        The word itself and the words in `without` are excluded. Returns pairs of a word and its
        cosine, nearest first; ties are in the order of `words`. Raises InputError if the word has
        no vector.
        """
        excluded = {*without, word} if isinstance(word, str) else set(without)
        vector = self[word] if isinstance(word, str) else np.asarray(word, np.float32)
        if self._unit_rows is None:
            self._unit_rows = _unit(self.matrix)
        cosines = self._unit_rows @ _unit(vector)
        wanted = min(count + len(excluded), len(cosines))
        if wanted < len(cosines):
            # Includes all words that tie with the last candidate.
            least = np.partition(cosines, -wanted)[-wanted] if wanted else np.inf
            places = np.flatnonzero(cosines >= least)
        else:
            places = np.arange(len(cosines))
        places = places[np.argsort(-cosines[places], kind="stable")]
        neighbors = ((self.words[place], float(cosines[place])) for place in places)
        return [pair for pair in neighbors if pair[0] not in excluded][:count]

    def analogy(self, a: str, b: str, c: str, count: int = 10) -> list[tuple[str, float]]:
        """Completes "a is to b as c is to ...": the words nearest to b - a + c, all unit vectors.

        Returns the same as `nearest`, without a, b and c.

        Reference:
            Mikolov, Yih and Zweig, "Linguistic Regularities in Continuous Space Word
            Representations", NAACL 2013, https://aclanthology.org/N13-1090
        """
        first, second, third = (_unit(self[word]) for word in (a, b, c))
        return self.nearest(second - first + third, count, without=(a, b, c))

    def cosine(self, first: str, second: str) -> float:
        """Returns the cosine similarity of two words."""
        return cosine(self[first], self[second])

    def embedding_matrix(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Builds the initial matrix of an embedding layer. `words` are in the order of their ids.

        Returns float32 `(len(words), D)`, zeros for words without a vector; and bool
        `(len(words),)`, True for words with a vector.
        """
        matrix = np.zeros((len(words), self.matrix.shape[1]), np.float32)
        is_known = np.zeros(len(words), bool)
        for place, word in enumerate(words):
            vector = self._find(word)
            if vector is not None:
                matrix[place], is_known[place] = vector, True
        return matrix, is_known

    def _find(self, word: str) -> np.ndarray | None:
        place = self._places.get(word)
        if place is not None:
            return self.matrix[place]
        return self.subwords.vector(word) if self.subwords is not None else None

    def _suggestion(self, word: str) -> str:
        lower = [form for form in (word.lower(), word.capitalize()) if form in self._places]
        near = difflib.get_close_matches(word[:60], self.words[:_SUGGESTIONS_FROM], n=3)
        known = list(dict.fromkeys([*lower, *near]))[:3]
        return f" - did you mean {' or '.join(known)}?" if known else ""


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the cosine similarity of two vectors; 0 if one of them is zero.

    >>> round(cosine(np.array([1.0, 0.0]), np.array([1.0, 1.0])), 4)
    0.7071
    """
    return float(_unit(np.asarray(first, np.float64)) @ _unit(np.asarray(second, np.float64)))


def _unit(vectors: np.ndarray) -> Any:
    """Scales vectors to length 1; zero vectors stay zero."""
    # Scaling first avoids overflow and underflow of the squares in float32.
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)
    lengths = np.sqrt((scaled * scaled).sum(axis=-1, keepdims=True))
    return scaled / np.where(lengths > 0, lengths, 1)


def _require_memory(path: Path) -> None:
    """Raises InputError if the vectors of a file do not fit into the memory."""
    if not pathlib.Path(path).is_file():
        # Standard input and pipes can be read only once.
        return
    numbers = pathlib.Path(path).stat().st_size // _MAX_DIGITS
    first = next(read_lines(path, errors="replace"), "")
    if header := re.fullmatch(r"(\d{1,15}) (\d{1,9})", first, flags=re.ASCII):
        numbers = max(numbers, int(header[1]) * int(header[2]))
    # The vectors of the words, and their matrix. A compressed file may have many more numbers.
    _require_memory_of(8 * numbers, path)


def _require_memory_of(size: int, path: Path) -> None:
    require_memory(size, f"{path}: reading its vectors", _ADVICE)


def _read_parts(path: Path, width: int) -> Subwords | None:
    place = pathlib.Path(path)
    file = place.with_name(place.name + PARTS)
    if str(path) == "-" or not file.is_file():
        return None
    try:
        with open_regular(file) as stream:
            status = os.fstat(stream.fileno())
            size = status.st_size
            if size_on_disk(status) < size:
                raise TensorFileError("a sparse file: it has holes instead of vectors")
            header = int.from_bytes(stream.read(8), "little")
        require_memory(size, str(file), _ADVICE)
        # The data are three int32 sizes, and an int32 bucket and a float32 vector per n-gram.
        count = max((size - 8 - header - 12) // (4 + 4 * width), 0)
        tensors = read_tensors(
            file,
            {
                "places": TensorSpec((count,), "int32"),
                "sizes": TensorSpec((3,), "int32"),
                "vectors": TensorSpec((count, width), "float32"),
            },
        )
        shortest, longest, buckets = (int(number) for number in tensors["sizes"])
        places = tensors["places"]
        in_order = count == 0 or (places[0] >= 0 and (np.diff(places) > 0).all())
        if not (1 <= shortest <= longest <= 100 and buckets >= 1 and in_order):
            raise TensorFileError("invalid n-gram vectors")
    except TensorFileError as error:
        raise InputError(
            f"{file}: not the n-gram vectors of {path}: {error}: delete the file, or train again"
        ) from None
    except OSError as error:
        raise InputError(f"{file}: {reason(error)}") from None
    return Subwords(shortest, longest, buckets, places, tensors["vectors"])
