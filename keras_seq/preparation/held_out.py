"""Validation pairs held out of the training text, for runs without validation files."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from keras_seq.preparation.files import PairCounts
from keras_seq.text import Example, Notice, PairFiles

# Enough pairs to measure BLEU with an error of about 1, but at most 1/20 of a small corpus.
_MAX_PAIRS = 1000
_MIN_PAIRS_PER_HELD_OUT = 20


class HeldOutText:
    """Training text split into validation pairs and the rest.

    A random sample, which depends on the seed, is held out. Other pairs with the same source are
    removed from the training text. If no training pair would be left, the text is used for both.
    """

    def __init__(self, files: PairFiles, counts: PairCounts, seed: int, notice: Notice) -> None:
        self._files = files
        self._removed = 0
        count = min(_MAX_PAIRS, counts.usable // _MIN_PAIRS_PER_HELD_OUT)
        indices = set(random.Random(seed).sample(range(counts.usable), count))
        self.pairs = [pair for i, pair in enumerate(files.read_usable()) if i in indices]
        self._keys = {pair.key for pair in self.pairs}
        unit = files.unit
        if self.pairs and any(pair.key not in self._keys for pair in files.read_usable()):
            notice(
                f"no validation files: {len(self.pairs):,} {unit}s held out of the training text"
            )
            return
        self._keys = set()
        self.pairs = list(itertools.islice(files.read_usable(), _MAX_PAIRS))
        notice(
            f"no validation files, and too few different {unit}s to hold any out: validating on "
            f"{len(self.pairs):,} of the training {unit}s, so scores say little"
        )

    def read(self) -> Iterator[Example]:
        """Reads the pairs that are not held out."""
        self._removed = 0
        for pair in self._files.read():
            if pair.key not in self._keys:
                yield pair
            elif pair.usable:
                self._removed += 1

    def report_duplicates(self, notice: Notice) -> None:
        """Reports the number of other pairs that the last complete `read` removed."""
        duplicates = self._removed - len(self.pairs)
        if self._keys and duplicates:
            shared = f"share a {'text' if self._files.is_labeled else 'source'} with one held out"
            if self._files.has_lines:
                shared = "equal one held out"
            notice(
                f"{duplicates:,} more {self._files.unit}s that {shared} are left out of the "
                "training text"
            )


class HeldOutEnd:
    """Training text split into its last lines, for validation, and the rest.

    For text whose lines depend on those before, such as that of `data.packed`.
    """

    def __init__(self, files: PairFiles, counts: PairCounts, notice: Notice) -> None:
        count = min(_MAX_PAIRS, counts.pairs // _MIN_PAIRS_PER_HELD_OUT)
        self._files = files
        self._left = counts.pairs - count
        self.pairs = list(itertools.islice(files.read(), self._left, None))
        if any(pair.usable for pair in self.pairs):
            notice(f"no validation files: the last {count:,} {files.unit}s are held out")
            return
        self._left = counts.pairs
        self.pairs = list(itertools.islice(files.read(), _MAX_PAIRS))
        notice(
            f"no validation files, and too few {files.unit}s to hold any out: validating on "
            f"{len(self.pairs):,} of the training {files.unit}s, so scores say little"
        )

    @property
    def num_lines(self) -> int:
        """Number of lines that `read` yields."""
        return self._left

    def read(self) -> Iterator[Example]:
        """Reads the lines that are not held out."""
        return itertools.islice(self._files.read(), self._left)

    def report_duplicates(self, notice: Notice) -> None:
        """Reports nothing: equal lines of one text are no reason to leave any of them out."""
