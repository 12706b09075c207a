"""Encodes pairs of lines as token ids."""

from __future__ import annotations

import itertools
import random
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from keras_seq.data import TokenPair
from keras_seq.text import (
    UNK_ID,
    Example,
    Tokenizer,
    link_tokens,
    tokens_of_words,
    with_languages,
)

CHUNK_PAIRS = 4096

# Ids between the two parts of the source, and of the target.
Separators = tuple[Sequence[int], Sequence[int]]


class Encoded(NamedTuple):
    """Encoded pairs, with counts for the report.

    `linked` counts pairs with links, and `broken` counts pairs that lost links because a linked
    word has no tokens. `lost` counts targets that change when they are encoded and decoded.
    `example` is the first such target with its decoded form.
    """

    pairs: Iterable[TokenPair]
    linked: int = 0
    broken: int = 0
    lost: int = 0
    example: tuple[str, str] | None = None


class Encoder(Protocol):
    """Encodes the lines of one task.

    Attributes:
        features, token_features: Whether the pairs have features, as for `write_corpus`.
        num_source_ids: Number of source ids that are not of the vocabulary, such as samples of a
            recording; 0 for tokens.
        max_parts: The largest number of joined pairs; see `Concatenation`.
    """

    features: bool
    token_features: int
    num_source_ids: int
    max_parts: int

    def separators(self, generator: random.Random) -> Separators:
        """Returns the ids between two joined pairs, of source and target."""

    def encode(self, chunk: Sequence[Example]) -> Encoded:
        """Returns the ids of some pairs of lines."""


class PairEncoder:
    """Encodes text as token ids, and links between words as links between tokens.

    The tokenizers are the same object if the vocabulary is joint. Pairs above the maximum lengths
    get no links, because the corpus drops them.
    """

    features = False
    token_features = 0
    num_source_ids = 0
    max_parts = 2

    def __init__(
        self, source: Tokenizer, target: Tokenizer, max_source_length: int, max_target_length: int
    ) -> None:
        self.source = source
        self.target = target
        self.longest = max_source_length, max_target_length

    def separators(self, generator: random.Random) -> Separators:
        """Returns the unknown token for both sides; without it, tasks such as reversal change."""
        return (UNK_ID,), (UNK_ID,)

    def encode(self, chunk: Sequence[Example]) -> Encoded:
        """Returns the ids of some pairs of lines."""
        sources = with_languages([pair.source for pair in chunk], self.source.languages)
        source_ids = self.source.encode(sources)
        target_ids = self.target.encode([pair.target for pair in chunk])
        weights = [pair.weight for pair in chunk]
        lost = self._lost_targets(chunk, target_ids)
        example = lost[0] if lost else None
        if not any(pair.links for pair in chunk):
            pairs = list(map(TokenPair, source_ids, target_ids, weights))
            return Encoded(pairs, lost=len(lost), example=example)
        links, broken = zip(*self._token_links(chunk, source_ids, target_ids), strict=True)
        pairs = list(map(TokenPair, source_ids, target_ids, weights, links))
        linked = sum(
            bool(pair.links) and count is not None
            for pair, count in zip(chunk, broken, strict=True)
        )
        return Encoded(pairs, linked, sum(map(bool, broken)), len(lost), example)

    def _lost_targets(
        self, chunk: Sequence[Example], ids: list[list[int]]
    ) -> list[tuple[str, str]]:
        """Returns (target, decoded target) for targets that encoding and decoding change."""
        return [
            (pair.target, decoded)
            for pair, decoded in zip(chunk, self.target.decode(ids), strict=True)
            if decoded != pair.target
            and pair.usable
            and _composed(decoded) != _composed(pair.target)
        ]

    def _token_links(
        self, chunk: Sequence[Example], source_ids: list[list[int]], target_ids: list[list[int]]
    ) -> Iterator[tuple[Sequence[tuple[int, int]], int | None]]:
        """Yields token links and number of lost links per pair; None if the pair is too long."""
        tokens = zip(
            tokens_of_words(self.source, [pair.source for pair in chunk]),
            tokens_of_words(self.target, [pair.target for pair in chunk]),
            strict=True,
        )
        lengths = zip(map(len, source_ids), map(len, target_ids), strict=True)
        for pair, words, length in zip(chunk, tokens, lengths, strict=True):
            if length[0] > self.longest[0] or length[1] > self.longest[1]:
                # The corpus drops this pair, which may have millions of links.
                yield (), None
                continue
            yield link_tokens(pair.links, *words)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def encode_here(encoder: Encoder, pairs: Iterable[Example]) -> Iterator[Encoded]:
    """Encodes many pairs in this process, chunk by chunk."""
    remaining = iter(pairs)
    while chunk := list(itertools.islice(remaining, CHUNK_PAIRS)):
        yield encoder.encode(chunk)
