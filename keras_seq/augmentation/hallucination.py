"""Training pairs with invented stems, for inflection and other changes of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from keras_seq.text import Example, InputError, Notice, source_of

# Anastasopoulos and Neubig (2019) call equal parts of at least three characters a stem. They
# replace each of its characters with this probability, and keep the first and the last character
# of a stem that is longer than this, because sounds change where an ending meets its stem.
_LEAST_LENGTH, _REPLACED, _KEEPS_ENDS = 3, 0.5, 5
# Characters of a side; the time to find stems grows with their square.
_MAX_LENGTH = 500
# Attempts to invent a pair that is not there yet, as a multiple of the pairs that are wanted.
_ATTEMPTS = 20


class Stem(NamedTuple):
    """An equal part of two strings: its first position in each, and its number of characters."""

    source: int
    target: int
    length: int


def stems(source: str, target: str) -> list[Stem]:
    """Returns the longest equal parts of two strings, in order, of at least three characters.

    >>> [source[:stem.length] for source, target in [("walked", "walking")]
    ...  for stem in stems(source, target)]
    ['walk']
    """
    matcher = SequenceMatcher(None, source, target, autojunk=False)
    found = [Stem(*block) for block in matcher.get_matching_blocks()]
    return [stem for stem in found if stem.length >= _LEAST_LENGTH]


def hallucinated_pairs(
    examples: Sequence[Example], count: int, *, seed: int = 0, notice: Notice | None = None
) -> Iterator[Example]:
    """Yields new pairs whose stems are random letters.

    Each comes from a random pair of `examples`. About half of the letters of its stems, which are
    the parts that source and target share, are replaced by the same random letters on both sides;
    what differs between the sides, and features, stay. From such pairs a model learns to copy
    stems and how endings change them.

    Args:
        examples: The pairs; a source may end with a tab and features.
        count: The number of pairs to make; fewer are made if too few different ones are found.
        seed: Seed of the random numbers.
        notice: Function that receives how many pairs have no stem.

    Raises:
        InputError: No pair has a stem, or no other pair can be made.

    Reference:
        Anastasopoulos and Neubig, "Pushing the Limits of Low-Resource Morphological Inflection",
        EMNLP 2019
    """
    generator = np.random.default_rng(seed)
    with_stem = [
        (example, found)
        for example in examples
        if max(len(example.source), len(example.target)) <= _MAX_LENGTH
        and (found := stems(source_of(example.source), example.target))
    ]
    if not with_stem:
        raise InputError(
            f"no source of {len(examples):,} pairs shares {_LEAST_LENGTH} consecutive letters with "
            f"its target, or one has more than {_MAX_LENGTH} characters: invented stems suit "
            "inflection and spelling, not pronunciation"
        )
    if notice is not None and len(with_stem) < len(examples):
        notice(
            f"{len(examples) - len(with_stem):,} of {len(examples):,} pairs are not used: source "
            f"and target share no {_LEAST_LENGTH} consecutive letters, or one has more than "
            f"{_MAX_LENGTH} characters"
        )
    # Common letters are common in stems too. Capital letters stay capital.
    text = sorted("".join(source_of(example.source) for example in examples))
    letters = {
        is_upper: [c for c in text if c.isalpha() and c.isupper() == is_upper]
        for is_upper in (False, True)
    }
    made = {(example.source, example.target) for example in examples}
    known = len(made)
    for _ in range(_ATTEMPTS * count):
        if count == 0:
            return
        example, found = with_stem[generator.integers(len(with_stem))]
        new = _with_new_stems(example, found, letters, generator)
        if (new.source, new.target) not in made:
            made.add((new.source, new.target))
            count -= 1
            yield new
    if len(made) == known:
        raise InputError(
            f"no new pair was found: the letters of {len(examples):,} pairs are too much alike"
        )


def _with_new_stems(
    example: Example,
    found: Sequence[Stem],
    letters: Mapping[bool, Sequence[str]],
    generator: np.random.Generator,
) -> Example:
    source, target = list(example.source), list(example.target)
    for stem in found:
        kept = 1 if stem.length > _KEEPS_ENDS else 0
        for offset in range(kept, stem.length - kept):
            # Spaces, hyphens and digits stay, so that words keep their shape.
            old = source[stem.source + offset]
            if old.isalpha() and generator.random() < _REPLACED:
                choices = letters[old.isupper()]
                letter = choices[int(generator.integers(len(choices)))]
                source[stem.source + offset] = target[stem.target + offset] = letter
    return example._replace(source="".join(source), target="".join(target))
