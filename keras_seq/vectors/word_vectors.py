"""Vectors by word: from a file and to one, near each other or not."""

from __future__ import annotations

import difflib
import gzip
import pathlib
from collections.abc import Iterable, Sequence
from typing import IO, Any

import numpy as np

from keras_seq.storage import atomic_file, open_regular, reason
from keras_seq.storage.checkpoints.tensor_file import (
    TensorFileError,
    TensorSpec,
    read_tensors,
    write_tensors,
)
from keras_seq.text import InputError, Notice, read_word_vectors
from keras_seq.text.reading import Path
from keras_seq.vectors.subwords import Subwords

# The file of the parts of words, beside that of the words.
PARTS = ".ngrams"
# Among so many words one is looked for that was probably meant.
_LOOKED_THROUGH = 50_000


class WordVectors:
    """Words and their vectors.

    Shape letters: N words, D numbers of a vector.

    Args:
        words: The words, each once.
        matrix: Float array `(N, D)`, a row for each.
        subwords: The vectors of parts of words, if there are any: words that are not among
            `words` have a vector by them.
        name: What messages call this; the file's name, for one.

    Raises:
        ValueError: If the rows are not as many as the words, or a word comes twice.

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
            raise ValueError("words: one of them comes twice")
        self._unit_rows: np.ndarray | None = None

    @classmethod
    def load(cls, path: Path, *, notice: Notice | None = None) -> WordVectors:
        """Reads a file in the text format of word2vec, GloVe or fastText.

        Args:
            path: As for `keras_seq.text.read_word_vectors`. The parts of words are read from
                the file beside it, if there is one.
            notice: As for `read_lines`.

        Raises:
            InputError: As `read_word_vectors` does; a file of parts that is none, or of
                another width.
        """
        found, _ = read_word_vectors(path, notice=notice)
        name = "standard input" if str(path) == "-" else str(path)
        matrix = np.array(list(found.values()), np.float32)
        return cls(list(found), matrix, _read_parts(path, matrix.shape[1]), name)

    def save(self, path: Path) -> None:
        """Writes the text format: `N D`, then a word and its numbers on each line.

        Numbers have nine digits, so a float32 is read back as it was. The parts of words, if there
        are any, go to a file with `.ngrams` behind the name, in the format safetensors; if there
        are none, such a file from before is deleted. Either is whole or not there.

        Args:
            path: The file; packed where its name ends in `.gz`.

        Raises:
            InputError: It cannot be written.
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
                # A full disk is found here, while the old files are still complete.
                file.flush()
                if self.subwords is None:
                    parts.unlink(missing_ok=True)
                else:
                    one = self.subwords
                    sizes = np.array([one.min_ngram, one.max_ngram, one.buckets], np.int32)
                    write_tensors(
                        parts, {"places": one.places, "sizes": sizes, "vectors": one.vectors}
                    )
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
        """Whether there is a vector for a word, by its parts as well."""
        return self._find(word) is not None

    def __getitem__(self, word: str) -> np.ndarray:
        """The vector of a word, float32 `(D,)`.

        Raises:
            InputError: There is none; with the nearest words by their letters.
        """
        vector = self._find(word)
        if vector is None:
            raise InputError(f"{self.name}: no vector for {word[:60]!r}{self._meant(word)}")
        return vector

    def nearest(
        self, word: str | np.ndarray, count: int = 10, *, without: Iterable[str] = ()
    ) -> list[tuple[str, float]]:
        """The words whose vectors point most nearly the same way.

        Args:
            word: A word, which is not among its own neighbours, or a vector `(D,)`.
            count: How many.
            without: Words that are left out.

        Returns:
            Words with their cosine, the nearest first; of equals that which comes first.

        Raises:
            InputError: There is no vector for the word.
        """
        left_out = {*without, word} if isinstance(word, str) else set(without)
        vector = self[word] if isinstance(word, str) else np.asarray(word, np.float32)
        if self._unit_rows is None:
            self._unit_rows = _unit(self.matrix)
        cosines = self._unit_rows @ _unit(vector)
        wanted = min(count + len(left_out), len(cosines))
        if wanted < len(cosines):
            # All that may be among the first, and those as near as the last of them.
            least = np.partition(cosines, -wanted)[-wanted] if wanted else np.inf
            places = np.flatnonzero(cosines >= least)
        else:
            places = np.arange(len(cosines))
        places = places[np.argsort(-cosines[places], kind="stable")]
        found = ((self.words[place], float(cosines[place])) for place in places)
        return [pair for pair in found if pair[0] not in left_out][:count]

    def analogy(self, a: str, b: str, c: str, count: int = 10) -> list[tuple[str, float]]:
        """What is to c as b is to a: the words nearest to b - a + c, each of length 1.

        Args:
            a, b, c: Words, which are not among the answers.
            count: How many answers.

        Returns:
            As `nearest` does.

        Raises:
            InputError: There is no vector for one of the words.

        Reference:
            Mikolov, Yih and Zweig, "Linguistic Regularities in Continuous Space Word
            Representations", NAACL 2013, https://aclanthology.org/N13-1090
        """
        first, second, third = (_unit(self[word]) for word in (a, b, c))
        return self.nearest(second - first + third, count, without=(a, b, c))

    def cosine(self, one: str, other: str) -> float:
        """The cosine of the angle between the vectors of two words."""
        return cosine(self[one], self[other])

    def embedding_matrix(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The vectors of another vocabulary, for the table of an embedding.

        Args:
            words: Its words, in the order of their ids.

        Returns:
            Float32 `(len(words), D)`, zeros where there is no vector; and bool
            `(len(words),)`, where there is one.
        """
        matrix = np.zeros((len(words), self.matrix.shape[1]), np.float32)
        found = np.zeros(len(words), bool)
        for place, word in enumerate(words):
            vector = self._find(word)
            if vector is not None:
                matrix[place], found[place] = vector, True
        return matrix, found

    def _find(self, word: str) -> np.ndarray | None:
        place = self._places.get(word)
        if place is not None:
            return self.matrix[place]
        return self.subwords.vector(word) if self.subwords is not None else None

    def _meant(self, word: str) -> str:
        lower = [one for one in (word.lower(), word.capitalize()) if one in self._places]
        near = difflib.get_close_matches(word[:60], self.words[:_LOOKED_THROUGH], n=3)
        known = list(dict.fromkeys([*lower, *near]))[:3]
        return f" - did you mean {' or '.join(known)}?" if known else ""


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """The cosine of the angle between two vectors; 0 where one is all zeros.

    >>> round(cosine(np.array([1.0, 0.0]), np.array([1.0, 1.0])), 4)
    0.7071
    """
    return float(_unit(np.asarray(one, np.float64)) @ _unit(np.asarray(other, np.float64)))


def _unit(vectors: np.ndarray) -> Any:
    """Vectors of length 1, or of zeros."""
    # What is very large or small has a square that no float32 holds.
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)
    lengths = np.sqrt((scaled * scaled).sum(axis=-1, keepdims=True))
    return scaled / np.where(lengths > 0, lengths, 1)


def _read_parts(path: Path, width: int) -> Subwords | None:
    place = pathlib.Path(path)
    file = place.with_name(place.name + PARTS)
    if str(path) == "-" or not file.is_file():
        return None
    try:
        size = file.stat().st_size
        with open_regular(file) as stream:
            header = int.from_bytes(stream.read(8), "little")
        # A place and a vector for each part, and three sizes.
        count = max((size - 8 - header - 12) // (4 + 4 * width), 0)
        found = read_tensors(
            file,
            {
                "places": TensorSpec((count,), "int32"),
                "sizes": TensorSpec((3,), "int32"),
                "vectors": TensorSpec((count, width), "float32"),
            },
        )
        shortest, longest, buckets = (int(number) for number in found["sizes"])
        places = found["places"]
        in_order = count == 0 or (places[0] >= 0 and (np.diff(places) > 0).all())
        if not (1 <= shortest <= longest <= 100 and buckets >= 1 and in_order):
            raise TensorFileError("not the parts of words")
    except TensorFileError as error:
        raise InputError(
            f"{file}: not the parts of the words of {path}: {error}: delete it, or train again"
        ) from None
    except OSError as error:
        raise InputError(f"{file}: {reason(error)}") from None
    return Subwords(shortest, longest, buckets, places, found["vectors"])
