"""Pairs of lines to pairs of token ids."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from keras_seq.data import TokenPair
from keras_seq.text import Example, Tokenizer, link_tokens, tokens_of_words

CHUNK_PAIRS = 4096


class Encoded(NamedTuple):
    """Pairs as token ids.

    Attributes:
        pairs: One for each pair of lines.
        linked: How many of them have links.
        broken: How many of these have links to words that leave no tokens.
        lost: How many targets are not what their ids are decoded to.
        example: The first of them and what it is decoded to; None if there is none.
    """

    pairs: list[TokenPair]
    linked: int = 0
    broken: int = 0
    lost: int = 0
    example: tuple[str, str] | None = None


class Encoder(Protocol):
    """Turns lines into ids, by its task."""

    def encode(self, chunk: Sequence[Example]) -> Encoded:
        """The ids of some pairs of lines."""


class PairEncoder:
    """Text to token ids, and links between words to links between tokens.

    Args:
        source, target: The tokenizers; one object where the vocabulary is joint.
        max_source_length, max_target_length: Longer pairs get no links, for they are not kept.
    """

    def __init__(
        self, source: Tokenizer, target: Tokenizer, max_source_length: int, max_target_length: int
    ) -> None:
        self.source = source
        self.target = target
        self.longest = max_source_length, max_target_length

    def encode(self, chunk: Sequence[Example]) -> Encoded:
        """The ids of some pairs."""
        sources, targets = [pair.source for pair in chunk], [pair.target for pair in chunk]
        ids = self.source.encode(sources), self.target.encode(targets)
        weights = [pair.weight for pair in chunk]
        lost = self._lost(chunk, ids[1])
        example = lost[0] if lost else None
        if not any(pair.links for pair in chunk):
            return Encoded(list(map(TokenPair, *ids, weights)), 0, 0, len(lost), example)
        placed = list(self._place(chunk, *ids))
        return Encoded(
            list(map(TokenPair, *ids, weights, (links for links, _ in placed))),
            linked=sum(
                bool(pair.links) and lost is not None
                for pair, (_, lost) in zip(chunk, placed, strict=True)
            ),
            broken=sum(bool(lost) for _, lost in placed),
            lost=len(lost),
            example=example,
        )

    def _lost(self, chunk: Sequence[Example], ids: list[list[int]]) -> list[tuple[str, str]]:
        """The targets that no translation can be, and what becomes of them."""
        return [
            (pair.target, back)
            for pair, back in zip(chunk, self.target.decode(ids), strict=True)
            if back != pair.target and pair.usable and _composed(back) != _composed(pair.target)
        ]

    def _place(
        self, chunk: Sequence[Example], source_ids: list[list[int]], target_ids: list[list[int]]
    ) -> Iterator[tuple[Sequence[tuple[int, int]], int | None]]:
        """The links of each pair and how many were lost, None where that was not looked at."""
        tokens = zip(
            tokens_of_words(self.source, [pair.source for pair in chunk]),
            tokens_of_words(self.target, [pair.target for pair in chunk]),
            strict=True,
        )
        lengths = zip(map(len, source_ids), map(len, target_ids), strict=True)
        for pair, words, length in zip(chunk, tokens, lengths, strict=True):
            if length[0] > self.longest[0] or length[1] > self.longest[1]:
                # Not kept, and maybe with millions of links.
                yield (), None
                continue
            yield link_tokens(pair.links, *words)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def encode_here(encoder: Encoder, pairs: Iterable[Example]) -> Iterator[Encoded]:
    """The ids of many pairs, chunk by chunk, in this process."""
    waiting = iter(pairs)
    while chunk := list(itertools.islice(waiting, CHUNK_PAIRS)):
        yield encoder.encode(chunk)
