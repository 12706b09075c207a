"""A text as word numbers in a temporary file, so that the text is read and split only once."""

from __future__ import annotations

import tempfile
import time
import unicodedata
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_seq.storage import named_errors
from keras_seq.text import InputError, Notice, read_lines
from keras_seq.text.reading import Path

# Marks the end of a sentence in a block of words.
END = -1
# Longer lines are split into sentences of this many words, as in word2vec.
LONGEST = 1_000
# Words per block. The learning rate is constant within a block.
_BLOCK = 10_000
# Number of characters to split at once, because a whole corpus may be a single line.
_CHARACTERS = 1 << 20
_BUFFER = 1 << 20
_SECONDS = 10.0
_OUT = -2


class Corpus:
    """The vocabulary of a text, and the text as word numbers.

    The text is read once from beginning to end, so it may be a pipe. Memory is proportional to the
    number of distinct words; the word numbers are in an unnamed temporary file, 4 bytes per word.

    `path` is a text for `keras_seq.text.read_lines`. A line is a sentence; words are separated by
    whitespace. Text is normalized to NFKC, as in a `Tokenizer`. Words with a frequency below
    `min_count` are dropped. `notice` receives lines that report progress.

    `words` are sorted by descending frequency, ties in the order of the text. `counts` are their
    frequencies, int64, and `total` is the sum. Raises InputError if the text cannot be read, or if
    fewer than two words reach `min_count`.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "text.txt"
    ...     _ = path.write_text("a dog runs\\na cat\\n")
    ...     corpus = Corpus(path, min_count=1)
    >>> corpus.words, corpus.counts.tolist()
    (['a', 'dog', 'runs', 'cat'], [2, 1, 1, 1])
    >>> [block.tolist() for block in corpus.blocks()]
    [[0, 1, 2, -1, 0, 3, -1]]
    """

    def __init__(
        self,
        path: Path,
        *,
        min_count: int = 5,
        lowercase: bool = False,
        notice: Notice | None = None,
    ) -> None:
        name = "standard input" if str(path) == "-" else str(path)
        self._file: Any = tempfile.TemporaryFile(prefix="keras-seq-")
        weakref.finalize(self, self._file.close)
        self._ends = [0]
        numbers = _Numbers()
        counts = self._write(read_lines(path, notice=notice), numbers, lowercase, name, notice)
        self.words_read = int(counts.sum())
        self.different = len(numbers)
        if not numbers:
            raise InputError(f"{name}: empty, there are no words to train on")
        frequent = np.flatnonzero(counts >= min_count)
        if len(frequent) < 2:
            often = "once" if min_count == 1 else f"{min_count:,} times"
            raise InputError(
                f"{name}: {len(frequent)} words come {often} or more, expected 2 at least: give a "
                "larger text, or lower the minimum count"
            )
        frequent = frequent[np.argsort(-counts[frequent], kind="stable")]
        all_words = list(numbers)
        # Words are numbered from 1, because 0 is the end of a sentence.
        self.words = [all_words[number - 1] for number in frequent]
        self.counts = counts[frequent]
        self.total = int(self.counts.sum())
        self._places = np.full(len(counts), _OUT, np.int32)
        self._places[frequent] = np.arange(len(frequent), dtype=np.int32)
        self._places[0] = END

    def blocks(self) -> Iterator[np.ndarray]:
        """Returns blocks of some thousand words, int32, with `END` after each sentence."""
        return map(self.block, range(self.block_count))

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return len(self._ends) - 1

    def block(self, number: int) -> np.ndarray:
        """Returns one block. Not thread-safe."""
        start, end = self._ends[number : number + 2]
        self._file.seek(4 * start)
        places = self._places[np.frombuffer(self._file.read(4 * (end - start)), np.int32)]
        return places[places != _OUT]

    def _write(
        self,
        lines: Iterator[str],
        numbers: _Numbers,
        lowercase: bool,
        name: str,
        notice: Notice | None,
    ) -> np.ndarray:
        """Writes the text as numbers by first occurrence; returns the count of each number."""
        counts = np.zeros(1, np.int64)
        buffer: list[int] = []
        written = block = 0
        last_report = time.monotonic()
        for line in lines:
            for words in _cut(line, lowercase):
                for start in range(0, len(words), LONGEST):
                    buffer.extend(map(numbers.__getitem__, words[start : start + LONGEST]))
                    buffer.append(0)
                    if written + len(buffer) - block >= _BLOCK:
                        block = written + len(buffer)
                        self._ends.append(block)
                if len(buffer) >= _BUFFER:
                    counts = self._flush(buffer, counts, len(numbers))
                    written += len(buffer)
                    buffer.clear()
                    if notice is not None and time.monotonic() - last_report >= _SECONDS:
                        last_report = time.monotonic()
                        notice(f"{name}: {written:,} words read, {len(numbers):,} different ones")
        counts = self._flush(buffer, counts, len(numbers))
        written += len(buffer)
        if written > block:
            self._ends.append(written)
        counts[0] = 0
        return counts

    def _flush(self, buffer: list[int], counts: np.ndarray, different: int) -> np.ndarray:
        array = np.array(buffer, np.int32)
        with named_errors(tempfile.gettempdir()):
            self._file.write(array.tobytes())
        more = np.bincount(array, minlength=different + 1)
        more[: len(counts)] += counts
        return more


class _Numbers(dict[str, int]):
    """Word numbers from 1, assigned at the first lookup."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self) + 1
        return number


def _cut(line: str, lowercase: bool) -> Iterator[list[str]]:
    """Splits a line into lists of words, to save memory if the line is long."""
    start = 0
    while start < len(line):
        end = start + _CHARACTERS
        if end < len(line):
            end = line.find(" ", end)
            end = end if end >= 0 else len(line)
        part = line[start:end]
        start = end
        if not part.isascii():
            part = unicodedata.normalize("NFKC", part)
        yield (part.lower() if lowercase else part).split()
