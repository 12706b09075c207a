"""How likely a model finds given translations, by forced decoding."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_seq import backend
from keras_seq.data.ids import BOS, EOS, PAD
from keras_seq.modelling import load_model
from keras_seq.run import Run
from keras_seq.search import forced_scores
from keras_seq.text import Tokenizer

# Target tokens scored at a time: their logits over a vocabulary of 8,000 are 64 MB.
_TOKENS = 2048
_MULTIPLE = 16


class Likelihood(NamedTuple):
    """A given translation as a model sees it.

    Attributes:
        tokens: Its ids, the end token last.
        log_probabilities: Natural logarithm of the probability of each, given
            the source and the tokens before.
    """

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        """log P(y | x), the end token included."""
        return math.fsum(self.log_probabilities)


def perplexity(found: Iterable[Likelihood]) -> float:
    """exp of the mean negative log-probability of a token, over all translations.

    Raises:
        ValueError: If there is none.
    """
    every = [value for one in found for value in one.log_probabilities]
    return perplexity_of(math.fsum(every), len(every))


def perplexity_of(log_probability: float, tokens: int) -> float:
    """exp(-log_probability / tokens); infinite where a float cannot hold it.

    Raises:
        ValueError: If there are no tokens.
    """
    if not tokens:
        raise ValueError("no translations, and so no tokens to take a mean of")
    mean = log_probability / tokens
    return math.exp(-mean) if mean > -700 else math.inf


class LikelihoodScorer:
    """Scores given translations of lines of text.

    Made by `LikelihoodScorer.load`, or from parts. Both texts are encoded as
    in training. A pair's score does not depend on the others.

    Args:
        model: A model of `keras_seq.models`, or an `Ensemble`.
        source_tokenizer: Turns sources into ids.
        target_tokenizer: Turns translations into ids.
        max_source_length: Longer sources are cut to so many tokens.

    Example:

    >>> scorer = LikelihoodScorer.load("runs/ende")  # doctest: +SKIP
    >>> scorer(["A dog runs."], ["Ein Hund rennt."])[0].total  # doctest: +SKIP
    -1.31
    """

    def __init__(
        self,
        model: Any,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_source_length: int = 200,
    ) -> None:
        self._source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self._max_source_length = max_source_length
        self._score = backend.compiled(
            lambda source, target, following: forced_scores(model, source, target, following),
            model.variables,
            ranks=[2, 2, 2],
        )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str = "best",
        notice: Callable[[str], None] | None = None,
    ) -> LikelihoodScorer:
        """Loads the scorer of a run directory.

        Args:
            path: The run directory.
            which: `"best"` or `"latest"` checkpoint.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.

        Raises:
            InputError: If `path` is not a run with a trained model.
        """
        run = Run.open(path, notice=notice)
        run.require_weights()
        return cls(
            load_model(run, which),
            run.source_tokenizer,
            run.target_tokenizer,
            run.settings.data.max_source_length,
        )

    def __call__(self, sources: Sequence[str], targets: Sequence[str]) -> list[Likelihood]:
        """Scores translations of lines.

        Args:
            sources: Lines of text.
            targets: As many lines, the translation of each.

        Returns:
            As many `Likelihood`.

        Raises:
            TypeError: If `sources` or `targets` is one string.
            ValueError: If there are not as many of both.
        """
        if isinstance(sources, str) or isinstance(targets, str):
            raise TypeError("`sources` and `targets` must be lists of strings, received a string.")
        return self.of_ids(
            self._source_tokenizer.encode(sources), self.target_tokenizer.encode(targets)
        )

    def of_ids(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[Likelihood]:
        """As `__call__`, of ids without end tokens."""
        if len(sources) != len(targets):
            raise ValueError(f"received {len(sources)} sources and {len(targets)} targets.")
        # Stable, so equal inputs in equal order make equal batches.
        order = sorted(range(len(targets)), key=lambda i: (-len(targets[i]), -len(sources[i])))
        results: list[Any] = [None] * len(targets)
        for rows in _batches(order, targets):
            scores = self._scores(
                [sources[i][: self._max_source_length] for i in rows], [targets[i] for i in rows]
            )
            for i, values in zip(rows, scores, strict=True):
                tokens = (*targets[i], EOS)
                results[i] = Likelihood(tokens, tuple(values[: len(tokens)].tolist()))
        return results

    def _scores(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> np.ndarray:
        scores = self._score(
            _pad([[*ids, EOS] for ids in sources]),
            _pad([[BOS, *ids] for ids in targets]),
            _pad([[*ids, EOS] for ids in targets]),
        )
        return np.asarray(keras.ops.convert_to_numpy(scores), np.float64)


def _batches(order: list[int], targets: Sequence[Sequence[int]]) -> Iterable[list[int]]:
    start = 0
    while start < len(order):
        # The first is the longest of them.
        count = max(1, _TOKENS // (len(targets[order[start]]) + 1))
        yield order[start : start + count]
        start += count


def _pad(lists: Sequence[Sequence[int]]) -> np.ndarray:
    rows, width = len(lists), max(map(len, lists))
    if backend.wants_static_shapes():
        # Few shapes, each of which is compiled.
        rows, width = 1 << (rows - 1).bit_length(), -(-width // _MULTIPLE) * _MULTIPLE
    batch = np.full((rows, width), PAD, np.int32)
    for row, ids in enumerate(lists):
        batch[row, : len(ids)] = ids
    return batch
