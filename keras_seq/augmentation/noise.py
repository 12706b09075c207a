"""Training pairs whose sources have noise: missing, masked and swapped words or characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from keras_seq.text import Example, InputError


class Noise(NamedTuple):
    """The amount of noise.

    The defaults are those of Edunov et al. (2018), except that no word is masked, because a mask
    must be a symbol of the vocabulary.

    Attributes:
        drop: The probability of removing a word.
        mask: The probability of replacing a word that stays by `mask_text`.
        swap: The maximum distance of a word from its place: 0 keeps the order.
        mask_text: What replaces a word.
        unit: `"word"`, or `"character"` for sources without spaces.

    Reference:
        Lample et al., "Unsupervised Machine Translation Using Monolingual Corpora Only", ICLR 2018;
        Edunov et al., "Understanding Back-Translation at Scale", EMNLP 2018
    """

    drop: float = 0.1
    mask: float = 0.0
    swap: int = 3
    mask_text: str = "<mask>"
    unit: Literal["word", "character"] = "word"

    def check(self) -> None:
        """Raises InputError if a probability is not from 0 to 1, or nothing would change."""
        for name in ("drop", "mask"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise InputError(f"{name}: received {value}, expected a probability from 0 to 1")
        if self.swap < 0:
            raise InputError(f"swap: received {self.swap}, expected a distance of at least 0")
        if not (self.drop or self.mask or self.swap):
            raise InputError("drop, mask and swap are 0: expected some noise")


def add_noise(units: Sequence[str], noise: Noise, generator: np.random.Generator) -> list[str]:
    """Returns a copy of words or characters with noise.

    At least one stays. The order is that of `position + u`, where `u` is uniform from 0 to
    `swap + 1`, so that none moves by more than `swap` (Lample et al. 2018, section 2.3).
    """
    places = np.arange(len(units)) + generator.uniform(0, noise.swap + 1, len(units))
    drawn = generator.random((2, len(units)))
    kept = drawn[0] >= noise.drop
    if len(units) and not kept.any():
        kept[generator.integers(len(units))] = True
    order = np.argsort(places, kind="stable") if noise.swap else np.arange(len(units))
    return [noise.mask_text if drawn[1, i] < noise.mask else units[i] for i in order if kept[i]]


def noised_pairs(
    examples: Iterable[Example], noise: Noise, *, copies: int = 1, seed: int = 0
) -> Iterator[Example]:
    """Yields pairs with noise in their sources; targets and features stay.

    Args:
        examples: The pairs; a source may end with a tab and features.
        noise: The amount of noise.
        copies: The number of noised pairs for each pair.
        seed: Seed of the random numbers.
    """
    noise.check()
    generator = np.random.default_rng(seed)
    for example in examples:
        source, tab, features = example.source.partition("\t")
        units = source.split() if noise.unit == "word" else list(source)
        separator = " " if noise.unit == "word" else ""
        for _ in range(copies):
            noised = separator.join(add_noise(units, noise, generator))
            yield example._replace(source=f"{noised}{tab}{features}")
