"""From attention between tokens to links between words, and to words for unknown tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from keras_seq.analysis.attention import Attention
from keras_seq.inference.hypothesis import CHARACTERS_PER_TOKEN, Hypothesis
from keras_seq.text import UNK_ID, Tokenizer, tokens_by_offsets, tokens_of_words

Words = list[list[int]]


def word_weights(weights: np.ndarray, source: Words, target: Words) -> np.ndarray:
    """Attention between words, of attention between tokens.

        a[word t, word s] = mean over tokens of t of the sum over tokens of s of a[t, s]

    Args:
        weights: Float array `(T, S)`, between tokens.
        source: The tokens of each source word.
        target: The tokens of each target word.

    Returns:
        Float array `(target words, source words)`; 0 where a word has no tokens. Rows sum to
        1 less what went to tokens of no word, such as the end of the sentence.

    Example:

    >>> word_weights(np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]), [[0], [1, 2]], [[0, 1]])
    array([[0.25, 0.75]])
    """
    columns = np.zeros((weights.shape[0], len(source)))
    for word, tokens in enumerate(source):
        columns[:, word] = weights[:, [i for i in tokens if i < weights.shape[1]]].sum(axis=1)
    rows = np.zeros((len(target), len(source)))
    for word, tokens in enumerate(target):
        if tokens:
            rows[word] = columns[tokens].mean(axis=0)
    return rows


class Aligner:
    """Uses attention: links words, and finds source words for unknown tokens.

    Args:
        source_tokenizer: Turned lines into ids.
        target_tokenizer: Turns ids into lines.
        max_source_length: Longer sources were cut to so many tokens.
    """

    def __init__(
        self, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, max_source_length: int = 200
    ) -> None:
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._characters = max_source_length * CHARACTERS_PER_TOKEN

    def links(self, line: str, found: Hypothesis, attention: Attention) -> list[tuple[int, int]]:
        """Links each word of a translation with the source word that got most attention.

        Words are what `str.split` finds. What the end of the source got counts for none.

        Args:
            line: The source.
            found: Its translation.
            attention: From `AttentionExtractor`.

        Returns:
            `(source word, target word)`, counted from 0, in the order of the target.
        """
        source = self._source_words(line, attention)
        surfaces = self._target_tokenizer.surfaces([found.tokens])[0]
        weights = attention.weights[: len(surfaces)]
        target = _words_of(self._replaced(surfaces, line, found, attention))
        if not any(source):
            return []
        between = word_weights(weights, source, target)
        return [(int(between[word].argmax()), word) for word, tokens in enumerate(target) if tokens]

    def without_unknown(self, line: str, found: Hypothesis, attention: Attention) -> Hypothesis:
        """A translation whose unknown tokens are replaced from the source.

        In the place of each comes the source word with the most attention; of a word that has
        unknown tokens itself, only those characters.

        Args:
            line: The source.
            found: Its translation.
            attention: From `AttentionExtractor`.

        Returns:
            The translation with another text.

        Reference:
            Jean et al., "On Using Very Large Target Vocabulary for Neural Machine
            Translation", 2015, section 3.3, https://arxiv.org/abs/1412.2007
        """
        if UNK_ID not in found.tokens:
            return found
        surfaces = self._target_tokenizer.surfaces([found.tokens])[0]
        return found._replace(text="".join(self._replaced(surfaces, line, found, attention)))

    def _source_words(self, line: str, attention: Attention) -> Words:
        (words,) = tokens_of_words(self._source_tokenizer, [line[: self._characters]])
        tokens = len(attention.source) - 1
        return [[token for token in word if token < tokens] for word in words]

    def _replaced(
        self, surfaces: Sequence[str], line: str, found: Hypothesis, attention: Attention
    ) -> list[str]:
        replaced = list(surfaces)
        unknown = [i for i, token in enumerate(found.tokens) if token == UNK_ID]
        if not unknown:
            return replaced
        words = self._source_words(line, attention)
        texts = line.split()
        (offsets,) = self._source_tokenizer.offsets([line[: self._characters]])
        for place in unknown:
            weights = attention.weights[place]
            between = word_weights(weights[None], words, [[0]])[0]
            word = int(between.argmax())
            alike = [token for token in words[word] if attention.source[token] == UNK_ID]
            if alike:
                begin, end = offsets[max(alike, key=lambda token: weights[token])]
                replaced[place] = line[begin:end].strip()
            else:
                replaced[place] = texts[word]
        return replaced


def _words_of(surfaces: Sequence[str]) -> Words:
    ends = list(itertools.accumulate(map(len, surfaces), initial=0))
    return tokens_by_offsets("".join(surfaces), itertools.pairwise(ends))
