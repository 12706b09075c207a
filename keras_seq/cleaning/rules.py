"""The rules that decide which pairs of a corpus are removed."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from keras_seq.cleaning.corpus_statistics import (
    CorpusStatistics,
    SideStatistics,
    is_copy,
    scripts_of,
)
from keras_seq.cleaning.foreign_text import foreign_texts
from keras_seq.text import Example, InputError, source_of

# The rules in the order in which they are applied, each with its description.
RULES = {
    "empty": "no text on one side",
    "damaged": "characters that no text has, such as U+FFFD or control characters",
    "length": "a side longer than the maximum",
    "script": "most letters of a side are in a script that the side rarely has in the corpus",
    "language": "a side looks like another language",
    "ratio": "the lengths of the sides do not fit each other",
    "copy": "the target is the source",
    "held-out": "the source, or a target of 20 or more characters, is in the held-out files",
    "duplicate": "the pair equals an earlier one",
}
_MAX_LENGTH_DEVIATION = 5.0
# Pairs that are needed to find texts in the language of the other side, and in a third language.
_MIN_PAIRS, _MIN_PAIRS_OF_THIRD = 200, 1000
# Rules that also judge the features of a source. One pair of words may occur with several.
_WITH_FEATURES = ("damaged", "duplicate")
# Shorter targets, such as numbers or "Yes.", are held out by chance.
_MIN_HELD_OUT = 20


class Rules:
    """Tells which rule removes a pair.

    The rules `held-out` and `duplicate` remember pairs as hashes of 8 bytes.

    Args:
        statistics: Statistics of the corpus.
        names: Names of the rules to apply, of `RULES`.
        max_characters: The maximum length of a side.
        held_out: Texts that the corpus must not have.
        has_features: Boolean, whether the sources end with a tab and features. They count for the
            rules `damaged` and `duplicate`.
    """

    def __init__(
        self,
        statistics: CorpusStatistics,
        *,
        names: Collection[str],
        max_characters: int,
        held_out: Iterable[str],
        has_features: bool = False,
    ) -> None:
        self._statistics = statistics
        self._has_features = has_features
        self._held_out = {_hash(text) for text in held_out}
        self._seen: set[bytes] = set()
        # Pairs without text are removed before, because no other rule can judge them.
        self._checks: dict[str, Callable[[Example], bool]] = {
            "damaged": lambda example: any(map(_is_damaged, example[:2])),
            "length": lambda example: max(map(len, example[:2])) > max_characters,
            "script": self._has_other_script,
            "language": lambda example: example in self._foreign,
            "ratio": self._has_other_ratio,
            "copy": self._is_copy,
            "held-out": self._is_held_out,
            "duplicate": self._is_duplicate,
        }
        self._foreign: set[Example] = set()
        self._names = [name for name in self._checks if name in names]

    def notes(self) -> list[str]:
        """Returns which rules are not applied, or only in part, because of the corpus."""
        notes: list[str] = []
        statistics = self._statistics
        size = statistics.num_examples
        if statistics.source is None:
            return notes
        if "language" in self._names and size < _MIN_PAIRS_OF_THIRD:
            rule = "not applied" if size < _MIN_PAIRS else "third languages are not looked for"
            least = _MIN_PAIRS if size < _MIN_PAIRS else _MIN_PAIRS_OF_THIRD
            notes.append(f"language: {rule}, which needs {least:,} pairs")
        if "copy" in self._names and statistics.copies_are_right:
            notes.append(
                f"copy: not applied, because {statistics.copies:.0%} of the pairs are copies"
            )
        return notes

    def reasons(self, examples: Sequence[Example]) -> list[str | None]:
        """Returns the name of the first rule that removes each pair, or None to keep it."""
        plain = [without_features(one) if self._has_features else one for one in examples]
        if "language" in self._names:
            self._foreign = self._in_another_language(plain)
        return [self._reason(*pair) for pair in zip(examples, plain, strict=True)]

    def _reason(self, example: Example, plain: Example) -> str | None:
        if not plain.usable:
            return "empty"
        for name in self._names:
            if self._checks[name](example if name in _WITH_FEATURES else plain):
                return name
        return None

    def _has_other_script(self, example: Example) -> bool:
        source, target = self._statistics.source, self._statistics.target
        return _is_in_other_script(example.target, example.source, target) or (
            source is not None and _is_in_other_script(example.source, example.target, source)
        )

    def _in_another_language(self, examples: Sequence[Example]) -> set[Example]:
        source, target = self._statistics.source, self._statistics.target
        if source is None or self._statistics.num_examples < _MIN_PAIRS:
            return set()
        foreign = self._are_foreign([example.target for example in examples], target, source)
        foreign |= self._are_foreign([example.source for example in examples], source, target)
        return {examples[int(number)] for number in np.flatnonzero(foreign)}

    def _are_foreign(
        self, texts: Sequence[str], side: SideStatistics, other: SideStatistics
    ) -> np.ndarray:
        """Returns whether each text of a side looks like another language."""
        size = self._statistics.num_letters
        found = foreign_texts(texts, side, other, size, leave_out=True)
        has_third = self._statistics.num_examples >= _MIN_PAIRS_OF_THIRD
        return found.other | found.third if has_third else found.other

    def _has_other_ratio(self, example: Example) -> bool:
        if self._statistics.source is None:
            return False
        deviation = self._statistics.length_deviation(example.source, example.target)
        return abs(deviation) > _MAX_LENGTH_DEVIATION

    def _is_copy(self, example: Example) -> bool:
        return not self._statistics.copies_are_right and is_copy(example.source, example.target)

    def _is_held_out(self, example: Example) -> bool:
        if not self._held_out:
            return False
        texts = [example.key]
        if len(example.target) >= _MIN_HELD_OUT:
            texts.append(example.target)
        return any(_hash(text) in self._held_out for text in texts)

    def _is_duplicate(self, example: Example) -> bool:
        key = _hash(f"{example.source}\n{example.target}")
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def without_features(example: Example) -> Example:
    """Returns a pair without the features that follow its source after a tab."""
    return example._replace(source=source_of(example.source))


def check_rule(name: str) -> None:
    """Raises InputError if no rule of this name can be skipped."""
    names = [rule for rule in RULES if rule != "empty"]
    if name not in names:
        raise InputError(f"rule {name!r}: expected one of {', '.join(names)}")


def _is_in_other_script(text: str, other: str, side: SideStatistics) -> bool:
    """Returns whether most letters are in scripts that the side of the text rarely has.

    Letters of the other text of the pair do not count, because a name may stay in its script.
    """
    scripts = scripts_of("".join(letter for letter in text if letter not in other))
    rare = sum(count for name, count in scripts.items() if name not in side.scripts)
    return 2 * rare > scripts.total()


def _is_damaged(text: str) -> bool:
    """Returns whether a text has a replacement, control, private or surrogate character."""
    if "\ufffd" in text:
        return True
    if text.isprintable():
        return False
    categories = {unicodedata.category(character) for character in text if character != "\t"}
    return not categories.isdisjoint({"Cc", "Co", "Cs"})


def _hash(text: str) -> bytes:
    """Returns 8 bytes that are equal for texts that differ only in spaces or composed accents."""
    content = " ".join(unicodedata.normalize("NFC", text).split())
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()
