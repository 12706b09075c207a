"""Removal of pairs that harm a training, with a report of what was removed and why."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from keras_seq.cleaning.corpus_statistics import CorpusStatistics
from keras_seq.cleaning.rules import RULES, Rules, check_rule, without_features
from keras_seq.text import Example, InputError, PairFiles

# Pairs that are judged at once.
_PAIRS = 5_000


class Cleaner:
    """Yields the pairs of a corpus that no rule removes.

    The rules learn scripts, letters and lengths from the corpus itself, so that they need no model
    of a language: a corpus of which most pairs are right is assumed.

    Args:
        files: The corpus, which is read twice. Its sources may have features.
        skip: Names of rules of `RULES` that are not applied; `empty` always is.
        max_characters: The maximum length of a side.
        held_out: Texts that the corpus must not have, such as the lines of test files.
        num_samples: The number of removed pairs to remember for each rule.

    Attributes:
        kept: The number of pairs that were kept so far.
        removed: The number of pairs that each rule removed so far.
        samples: The first pairs that each rule removed.
        notes: Rules that the corpus is too small for, or that do not suit it.

    Raises:
        InputError: A rule is unknown, a file cannot be read, or no pair has text.

    >>> import pathlib, tempfile
    >>> pairs = [f"{n} cats sit.\\tda sitzen {n} Katzen." for n in range(50)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "pairs.tsv"
    ...     _ = path.write_text("\\n".join([*pairs, pairs[7], "a dog\\t"]) + "\\n")
    ...     cleaner = Cleaner(PairFiles(pairs=str(path)))
    ...     kept = [example for example, reason in cleaner.read() if reason is None]
    >>> len(kept), dict(cleaner.removed)
    (50, {'duplicate': 1, 'empty': 1})
    """

    def __init__(
        self,
        files: PairFiles,
        *,
        skip: Collection[str] = (),
        max_characters: int = 1000,
        held_out: Iterable[str] = (),
        num_samples: int = 3,
    ) -> None:
        for name in skip:
            check_rule(name)
        self._files = files
        examples = map(without_features, files.read()) if files.has_features else files.read()
        statistics = CorpusStatistics(examples)
        if not statistics.num_examples:
            raise InputError(f"{files}: no {files.unit} has text")
        self._rules = Rules(
            statistics,
            names=[name for name in RULES if name not in skip],
            max_characters=max_characters,
            held_out=held_out,
            has_features=files.has_features,
        )
        self.notes = self._rules.notes()
        self._num_samples = num_samples
        self.kept = 0
        self.removed: Counter[str] = Counter()
        self.samples: dict[str, list[Example]] = {}

    def read(self) -> Iterator[tuple[Example, str | None]]:
        """Yields each pair with the name of the rule that removes it, or None if it is kept."""
        remaining = self._files.read()
        while examples := list(itertools.islice(remaining, _PAIRS)):
            for example, reason in zip(examples, self._rules.reasons(examples), strict=True):
                self._count(example, reason)
                yield example, reason

    def _count(self, example: Example, reason: str | None) -> None:
        if reason is None:
            self.kept += 1
            return
        self.removed[reason] += 1
        samples = self.samples.setdefault(reason, [])
        if len(samples) < self._num_samples:
            samples.append(example)
