"""Word alignments from attention between tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from keras_seq.analysis.attention import Attention
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.predictor import CHARACTERS_PER_TOKEN
from keras_seq.text import UNK_ID, Tokenizer, plain_sources, tokens_by_offsets, tokens_of_words

Words = list[list[int]]


def word_weights(weights: np.ndarray, source: Words, target: Words) -> np.ndarray:
    """Converts attention weights between tokens `(T, S)` to weights between words.

        a[word t, word s] = mean over tokens of t of the sum over tokens of s of a[t, s]

    `source` and `target` list the tokens of each word; a word without tokens has weights of 0. A
    row sums to 1 minus the weights of tokens that belong to no word, such as the end token.

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
    """Links words by attention, and replaces unknown tokens by words of the source."""

    def __init__(
        self, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, max_source_length: int = 200
    ) -> None:
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._max_characters = max_source_length * CHARACTERS_PER_TOKEN

    def links(
        self, line: str, hypothesis: Hypothesis, attention: Attention
    ) -> list[tuple[int, int]]:
        """Links each target word with the source word that has the largest attention weight.

        Words are separated as by `str.split` and counted from 0. The end token of the source
        belongs to no word.
        """
        source = self._source_words(line, attention)
        surfaces = self._target_tokenizer.surfaces([hypothesis.tokens])[0]
        weights = attention.weights[: len(surfaces)]
        target = _words_of(self._replace_unknown(surfaces, line, hypothesis, attention))
        if not any(source):
            return []
        between = word_weights(weights, source, target)
        return [(int(between[word].argmax()), word) for word, tokens in enumerate(target) if tokens]

    def without_unknown(
        self, line: str, hypothesis: Hypothesis, attention: Attention
    ) -> Hypothesis:
        """Replaces each unknown token by the source word with the largest attention weight.

        If that word has unknown tokens itself, only their characters are copied.

        Reference:
            Jean et al., "On Using Very Large Target Vocabulary for Neural Machine
            Translation", 2015, section 3.3, https://arxiv.org/abs/1412.2007
        """
        if UNK_ID not in hypothesis.tokens:
            return hypothesis
        surfaces = self._target_tokenizer.surfaces([hypothesis.tokens])[0]
        texts = self._replace_unknown(surfaces, line, hypothesis, attention)
        return hypothesis._replace(text="".join(texts))

    def _source_words(self, line: str, attention: Attention) -> Words:
        (words,) = tokens_of_words(self._source_tokenizer, [line[: self._max_characters]])
        if self._source_tokenizer.languages:
            # The first word is the tag of the target language.
            words = words[1:]
        length = len(attention.source) - 1
        return [[token for token in word if token < length] for word in words]

    def _replace_unknown(
        self, surfaces: Sequence[str], line: str, hypothesis: Hypothesis, attention: Attention
    ) -> list[str]:
        texts = list(surfaces)
        unknown = [i for i, token in enumerate(hypothesis.tokens) if token == UNK_ID]
        if not unknown:
            return texts
        words = self._source_words(line, attention)
        (text,) = plain_sources([line], self._source_tokenizer)
        source_texts = text.split()
        (offsets,) = self._source_tokenizer.offsets([line[: self._max_characters]])
        for i in unknown:
            weights = attention.weights[i]
            word = int(word_weights(weights[None], words, [[0]])[0].argmax())
            unknown_tokens = [t for t in words[word] if attention.source[t] == UNK_ID]
            if unknown_tokens:
                begin, end = offsets[max(unknown_tokens, key=lambda token: weights[token])]
                texts[i] = line[begin:end].strip()
            else:
                texts[i] = source_texts[word]
        return texts


def _words_of(surfaces: Sequence[str]) -> Words:
    ends = list(itertools.accumulate(map(len, surfaces), initial=0))
    return tokens_by_offsets("".join(surfaces), itertools.pairwise(ends))
