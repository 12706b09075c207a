"""Statistics that the rules learn from a corpus: scripts, letters and lengths of both sides."""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from keras_seq.cleaning.character_model import CharacterModel, letters_of, num_trigrams
from keras_seq.text import Example

# Pairs that the statistics are computed from, evenly spread over the corpus.
_MAX_PAIRS = 100_000
_MAX_CHARACTERS = 2**28
# Lines whose letters are counted at once.
_LINES = 10_000
# Share of the letters of a side above which a script belongs to the side.
_MIN_SCRIPT_SHARE = 0.05
# In a corpus with a larger share of copies, such as word forms, copies are right.
_MAX_COPIES = 0.1
# Scripts that one text mixes freely, with the Chinese characters.
_JAPANESE = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"}
# The median absolute deviation of a normal distribution, in standard deviations.
_DEVIATION = 0.6745


class Spread(NamedTuple):
    """The median of some values and their standard deviation, estimated from the median distance.

    A few outliers change neither of them.
    """

    median: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray) -> Spread:
        median = float(np.median(values))
        return cls(median, float(np.median(np.abs(np.asarray(values) - median))) / _DEVIATION)


class SideStatistics:
    """Scripts and letters of one side of a corpus.

    Attributes:
        scripts: Names of the scripts that have at least 5 % of the letters, such as `"LATIN"`.
        model: The character trigrams of the lines.
        likelihood: The log-probabilities per character of the lines, each without its own counts;
            the deviation is that of a line with one character.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        counts: Counter[str] = Counter()
        self.model = CharacterModel()
        for some in _parts(lines):
            self.model.add(some)
            for line in some:
                counts.update(scripts_of(line))
        total = counts.total()
        self.scripts = {
            name for name, count in counts.items() if count >= _MIN_SCRIPT_SHARE * total
        }
        self.likelihood = Spread(0.0, 0.0)

    def measure(self, lines: Sequence[str], num_letters: int) -> None:
        """Computes `likelihood` from the lines that the model was made of."""
        values = np.concatenate(
            [
                self.model.log_probabilities(some, num_letters, leave_out=True)
                for some in _parts(lines)
            ]
        )
        median = float(np.median(values))
        roots = np.sqrt([num_trigrams(line) for line in lines])
        self.likelihood = Spread(median, Spread.of((values - median) * roots).deviation)

    def unlikeliness(self, texts: Sequence[str], values: np.ndarray) -> np.ndarray:
        """Returns how far log-probabilities of texts are below the median, in deviations.

        The mean of a longer text varies less, with the square root of its length.
        """
        roots = np.sqrt([num_trigrams(text) for text in texts])
        return (self.likelihood.median - values) * roots / max(self.likelihood.deviation, 0.5)


class CorpusStatistics:
    """Statistics of a corpus, from at most 200,000 of its pairs.

    Attributes:
        num_examples: The number of pairs that the statistics come from.
        source, target: Statistics of each side; `source` is None for text without sources.
        num_letters: The number of different letters of both sides.
        copies: The share of pairs whose target is their source.
        ratio: Characters of a target per character of its source.
        length: Deviations of `(target - ratio * source) / sqrt(source)` in characters.
    """

    def __init__(self, examples: Iterable[Example]) -> None:
        sample = _spread(examples)
        self.num_examples = len(sample)
        targets = [example.target for example in sample]
        sources = [example.source for example in sample if not example.target_only]
        self.target = SideStatistics(targets)
        self.source = SideStatistics(sources) if sources else None
        letters = self.target.model.letters | (self.source.model.letters if self.source else set())
        self.num_letters = len(letters) + 1
        self.copies = self.ratio = 0.0
        self.length = Spread(0.0, 1.0)
        if targets:
            self.target.measure(targets, self.num_letters)
        if self.source is None:
            return
        self.source.measure(sources, self.num_letters)
        pairs = list(zip(sources, targets, strict=True))
        self.copies = sum(is_copy(*pair) for pair in pairs) / len(pairs)
        # Many copies would have the ratio 1, whatever that of translations is.
        translated = [pair for pair in pairs if not is_copy(*pair)] or pairs
        self.ratio = statistics.median(len(target) / len(source) for source, target in translated)
        self.length = Spread.of([self._distance(*pair) for pair in translated])

    @property
    def copies_are_right(self) -> bool:
        """True if more than 10 % of the pairs are copies, as in tables of word forms."""
        return self.copies > _MAX_COPIES

    def length_deviation(self, source: str, target: str) -> float:
        """Returns how far the lengths of a pair are from those of the corpus, in deviations.

        Reference:
            Gale and Church, "A Program for Aligning Sentences in Bilingual Corpora", Computational
            Linguistics 19(1), 1993, equation for delta in section 2.2
        """
        # Where all pairs have one ratio of lengths, others may still differ by a few characters.
        return (self._distance(source, target) - self.length.median) / max(
            self.length.deviation, 0.5
        )

    def _distance(self, source: str, target: str) -> float:
        return (len(target) - self.ratio * len(source)) / math.sqrt(len(source))


def _parts(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    return (lines[start : start + _LINES] for start in range(0, len(lines), _LINES))


def scripts_of(text: str) -> Counter[str]:
    """Returns the number of letters of each script, such as `"LATIN"`."""
    scripts: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if character.isalpha():
            scripts[_script(character)] += count
    return scripts


@lru_cache(maxsize=50_000)
def _script(letter: str) -> str:
    # Without the width of letters such as the full-width ones of East Asia.
    letter = unicodedata.normalize("NFKC", letter)[0]
    # The first word of a letter's name, as in "GREEK SMALL LETTER ALPHA" or "CJK UNIFIED ...".
    name = unicodedata.name(letter, "UNKNOWN").split(" ")[0]
    return "JAPANESE" if name in _JAPANESE else name


def is_copy(source: str, target: str) -> bool:
    """Returns whether two texts with letters differ only in case, digits or punctuation."""
    letters = letters_of(source)
    return bool(letters) and letters == letters_of(target)


def _spread(examples: Iterable[Example]) -> list[Example]:
    """Returns at most 200,000 usable examples: every Nth, with the smallest such N.

    They have at most 268 million characters, or one example has more.
    """
    kept: list[Example] = []
    step = 1
    size = 0
    usable = (example for example in examples if example.usable)
    for number, example in enumerate(usable):
        if number % step == 0:
            kept.append(example)
            size += _length(example)
            while len(kept) > 1 and (len(kept) == 2 * _MAX_PAIRS or size > _MAX_CHARACTERS):
                kept, step = kept[::2], 2 * step
                size = sum(map(_length, kept))
    return kept


def _length(example: Example) -> int:
    return len(example.source) + len(example.target)
