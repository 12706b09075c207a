"""Log-probabilities of existing translations, by forced decoding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import keras
import numpy as np

from keras_seq import backend
from keras_seq.inference.predictor import check_pairs, encode_sources, predict_by_length
from keras_seq.inference.row_memory import scoring_memory
from keras_seq.inference.run_predictor import RunPredictor
from keras_seq.run import Run
from keras_seq.run.memory import fitting_rows
from keras_seq.search import forced_scores
from keras_seq.settings import SearchSettings
from keras_seq.text import BOS_ID, EOS_ID, InputError, Tokenizer, with_languages

__all__ = ["Likelihood", "LikelihoodScorer", "perplexity"]

# Maximum logits per batch: 64 MB.
_LOGITS = 1 << 24
_MAX_TOKENS = 2048
# Attention takes memory that grows with the square of the length: several GB at this length.
MAX_TARGET_LENGTH = 4096


class Likelihood(NamedTuple):
    """The log-probability of one translation under a model.

    Attributes:
        tokens: The ids of the translation, with the end token; empty if source and translation
            are blank.
        log_probabilities: The natural logarithm of the probability of each token, given the
            source and the tokens before.
        source_length: The number of source tokens that the model read, without an end token.
        source_truncated: True if the source was truncated.
    """

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    source_length: int = 0
    source_truncated: bool = False

    @property
    def total(self) -> float:
        """log P(y | x), with the end token."""
        return math.fsum(self.log_probabilities)


class LongTargetError(InputError):
    """Raised for a translation at `index` that is too long to be scored."""

    def __init__(self, index: int, length: int) -> None:
        self.index = index
        self.what = (
            f"a translation of {length:,} tokens, expected at most {MAX_TARGET_LENGTH:,}: "
            "score it sentence by sentence"
        )
        super().__init__(f"translation {index + 1}: {self.what}")


def check_target_lengths(targets: Iterable[Sequence[int]]) -> None:
    """Raises LongTargetError for the first translation that is too long to be scored."""
    for index, ids in enumerate(targets):
        if len(ids) > MAX_TARGET_LENGTH:
            raise LongTargetError(index, len(ids))


def perplexity(likelihoods: Iterable[Likelihood]) -> float:
    """Returns exp of the mean negative log-probability of a token, over all translations.

    Example:

    >>> round(perplexity([Likelihood((9, 3), (-1.0, -2.0))]), 4)
    4.4817
    """
    likelihoods = list(likelihoods)
    total = sum(likelihood.total for likelihood in likelihoods)
    return perplexity_of(total, sum(len(likelihood.tokens) for likelihood in likelihoods))


def perplexity_of(log_probability: float, tokens: int) -> float:
    """Returns exp(-log_probability / tokens), infinity if a float cannot hold it."""
    if not tokens:
        raise ValueError("no tokens to take a mean of: every pair is blank, or there is none.")
    mean = log_probability / tokens
    return math.exp(-mean) if mean > -700 else math.inf


class LikelihoodScorer(RunPredictor):
    """Scores existing translations of lines of text, by forced decoding.

        log P(y | x) = sum over t of log P(y_t | y_<t, x),  with the end token

    `LikelihoodScorer.load` loads a trained model. Long sources are truncated as for a translation,
    targets are never truncated. The score of a pair does not depend on the other pairs.

    Args:
        model: A model of `keras_seq.models`, or an `Ensemble`.
        source_tokenizer: The tokenizer of the source.
        target_tokenizer: The tokenizer of the target.
        max_source_length: Maximum number of source tokens; longer sources are truncated.

    Example:

    >>> scorer = LikelihoodScorer.load("runs/ende")  # doctest: +SKIP
    >>> scorer(["A dog runs."], ["Ein Hund rennt."])[0].total  # doctest: +SKIP
    -1.31
    """

    task = None
    searches = False

    def __init__(
        self,
        model: Any,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_source_length: int = 200,
    ) -> None:
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self._model = model
        self._max_source_length = max_source_length
        self._batch_tokens = min(_LOGITS // target_tokenizer.vocabulary_size, _MAX_TOKENS)
        self._score = backend.compiled(
            lambda source, target, following: forced_scores(model, source, target, following),
            model.variables,
            ranks=[2, 2, 2],
        )

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        length = run.settings.data.max_source_length
        return cls(model, run.source_tokenizer, run.target_tokenizer, length, **options)

    def __call__(
        self, sources: Sequence[str], targets: Sequence[str], *, to: str | None = None
    ) -> list[Likelihood]:
        """Scores a translation of each line.

        A pair of two blank lines has no tokens and a total of 0. If only the target is blank, its
        end token is scored. `to` is the target language, for a model with several; see
        `Translator.translate`.

        Raises:
            TypeError: If `sources` or `targets` is one string.
            ValueError: If the numbers of sources and targets differ.
            LongTargetError: If a translation is longer than `MAX_TARGET_LENGTH` tokens.
            InputError: If a log-probability is not finite, or a pair does not fit into the memory.
        """
        check_pairs(sources=sources, targets=targets)
        sources = with_languages(sources, self.source_tokenizer.languages, to)
        return self.of_tokens(sources, self.target_tokenizer.encode(targets))

    def of_tokens(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Likelihood]:
        """Scores translations that are token ids without end tokens, such as search results."""
        if len(sources) != len(targets):
            raise ValueError(f"received {len(sources)} sources and {len(targets)} targets.")
        check_target_lengths(targets)
        source_ids, truncated = encode_sources(
            sources, self.source_tokenizer, self._max_source_length
        )
        pairs: list[_Ids] = list(zip(source_ids, targets, strict=True))
        filled = [i for i, (source, target) in enumerate(pairs) if source or target]
        scores = predict_by_length(
            [pairs[i] for i in filled],
            self._predict,
            length=lambda pair: (len(pair[1]), len(pair[0])),
        )
        results = [Likelihood((), ())] * len(pairs)
        for i, values in zip(filled, scores, strict=True):
            tokens = (*targets[i], EOS_ID)
            results[i] = Likelihood(
                tokens, tuple(values[: len(tokens)].tolist()), len(source_ids[i]), truncated[i]
            )
        return results

    def _predict(self, pairs: list[_Ids]) -> Iterator[np.ndarray]:
        """Yields the log-probabilities of each pair; batches have a limited number of tokens."""
        batch: list[_Ids] = []
        longest = 0
        for pair in pairs:
            length = max(map(len, pair)) + 1
            longest = max(longest, length)
            if batch and (len(batch) + 1) * longest > self._batch_tokens:
                yield from self._scores_of_parts(batch)
                batch, longest = [], length
            batch.append(pair)
        if batch:
            yield from self._scores_of_parts(batch)

    def _scores_of_parts(self, pairs: list[_Ids]) -> Iterator[np.ndarray]:
        """Yields the log-probabilities of each pair of a batch, in parts that fit into the memory.

        Raises InputError if a single pair does not fit.
        """
        source, target = (1 + max(map(len, column)) for column in zip(*pairs, strict=True))
        rows = fitting_rows(
            scoring_memory(self._model, source, target, self.target_tokenizer.vocabulary_size),
            len(pairs),
            1,
            f"the score of a text of up to {target:,} tokens"
            + (f", with a source of up to {source:,}," if source > 1 else ""),
            "use shorter lines",
        )
        for start in range(0, len(pairs), rows):
            yield from self._scores(pairs[start : start + rows])

    def _scores(self, pairs: list[_Ids]) -> np.ndarray:
        result = self._score(
            backend.padded([[*source, EOS_ID] for source, _ in pairs]),
            backend.padded([[BOS_ID, *target] for _, target in pairs]),
            backend.padded([[*target, EOS_ID] for _, target in pairs]),
        )
        scores = np.asarray(keras.ops.convert_to_numpy(result), np.float64)[: len(pairs)]
        if not np.isfinite(scores).all():
            raise InputError(
                "the model gives log-probabilities that are not finite numbers: its weights are "
                "damaged, or the training diverged; take another checkpoint"
            )
        return scores


_Ids = tuple[Sequence[int], Sequence[int]]
