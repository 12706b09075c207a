"""Encodes labeled lines as token ids and label ids."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from keras_seq.data import TokenPair
from keras_seq.preparation.encoding import Encoded, Separators
from keras_seq.text import (
    INSIDE_ID,
    WORD_CHARACTERS,
    Example,
    Labels,
    Tokenizer,
    word_tokens,
    words_of,
)


class _LabeledEncoder:
    """Base class of encoders of labeled text, of which no two lines are joined."""

    num_source_ids = 0
    max_parts = 2

    def separators(self, generator: random.Random) -> Separators:
        return (), ()


class LabelEncoder(_LabeledEncoder):
    """Encodes each text as token ids and its label as one id.

    Texts longer than `max_length` are truncated, because their beginning has the same label. If
    `characters`, a token is a word, and its features are the characters of the word.
    """

    def __init__(
        self,
        source: Tokenizer,
        labels: Labels,
        max_length: int,
        class_weights: Mapping[str, float] | None = None,
        characters: bool = False,
    ) -> None:
        self.features = characters
        self.token_features = WORD_CHARACTERS if characters else 0
        self.source = source
        self.labels = labels
        self.max_length = max_length
        self.class_weights = class_weights or {}

    def encode(self, chunk: Sequence[Example]) -> Encoded:
        """Returns the ids of some texts. A text without a label has no label id."""
        rows, features = self._tokens([pair.source for pair in chunk])
        labels = self.labels.ids(pair.target for pair in chunk)
        return Encoded(
            [
                TokenPair(
                    ids[: self.max_length],
                    [label] if pair.target else [],
                    pair.weight * self.class_weights.get(pair.target, 1.0),
                    features=characters[: self.max_length * self.token_features],
                )
                for ids, characters, label, pair in zip(rows, features, labels, chunk, strict=True)
            ]
        )

    def _tokens(self, texts: list[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Returns token ids and features of each text."""
        if not self.features:
            return self.source.encode(texts), [[] for _ in texts]
        rows = word_tokens(self.source, texts, whole_words=True)
        return [row.ids for row in rows], [row.characters() for row in rows]


class TagEncoder(_LabeledEncoder):
    """Encodes words as token ids, with the tag of each word at its first token.

    If `characters`, the features of each token are the characters of its word; see
    `word_characters`.
    """

    def __init__(self, source: Tokenizer, labels: Labels, characters: bool = False) -> None:
        self.source = source
        self.labels = labels
        self.features = characters
        self.token_features = WORD_CHARACTERS if characters else 0

    def encode(self, chunk: Sequence[Example]) -> Encoded:
        """Returns the token ids of some texts, with one tag id per token."""
        encoded = []
        texts = [pair.source for pair in chunk]
        rows = word_tokens(self.source, texts, whole_words=self.features)
        for row, pair in zip(rows, chunk, strict=True):
            tags = [INSIDE_ID] * len(row.ids)
            for index, tag in zip(row.begins, self.labels.ids(words_of(pair.target)), strict=True):
                tags[index] = tag
            features = row.characters() if self.features else ()
            encoded.append(TokenPair(row.ids, tags, pair.weight, features=features))
        return Encoded(encoded)


def balanced_weights(examples: Iterable[Example]) -> dict[str, float]:
    """Returns the weight of a text by its label: `n / (k * n_label)`.

    With `n` texts and `k` labels, every label has the same total weight.

    Example:

    >>> balanced_weights([Example("a", "x"), Example("b", "x"), Example("c", "y")])
    {'x': 0.75, 'y': 1.5}
    """
    counts = Counter(pair.target for pair in examples if pair.usable)
    return {label: counts.total() / (len(counts) * count) for label, count in counts.items()}
