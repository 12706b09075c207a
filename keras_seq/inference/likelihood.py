"""How likely a model finds given translations, by forced decoding."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_seq import backend
from keras_seq.data.ids import BOS, EOS
from keras_seq.inference.hypothesis import encode_sources
from keras_seq.run import Run
from keras_seq.run.models import load_models
from keras_seq.search import forced_scores
from keras_seq.text import InputError, Tokenizer

__all__ = [
    "Likelihood",
    "LikelihoodScorer",
    "LongTargetError",
    "check_target_lengths",
    "perplexity",
    "perplexity_of",
]

# Logits of a batch, 64 MB of them.
_LOGITS = 1 << 24
_MOST_TOKENS = 2048
# Attention takes memory with the square of it: some GB here, all that there is for a book.
MAX_TARGET_LENGTH = 4096


class Likelihood(NamedTuple):
    """A given translation as a model sees it.

    Attributes:
        tokens: Its ids, the end token last; none where source and translation are blank.
        log_probabilities: Natural logarithm of the probability of each, given
            the source and the tokens before.
        source_length: Tokens of the source that the model was given, without an end token.
        source_cut: Whether it has more.
    """

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    source_length: int = 0
    source_cut: bool = False

    @property
    def total(self) -> float:
        """log P(y | x), the end token included."""
        return math.fsum(self.log_probabilities)


class LongTargetError(InputError):
    """A translation too long to be scored.

    Args:
        index: Of the translation, from 0.
        length: Its tokens.
    """

    def __init__(self, index: int, length: int) -> None:
        self.index = index
        self.what = (
            f"a translation of {length:,} tokens, expected at most {MAX_TARGET_LENGTH:,}: "
            "score it sentence by sentence"
        )
        super().__init__(f"translation {index + 1}: {self.what}")


def check_target_lengths(targets: Iterable[Sequence[int]]) -> None:
    """Refuses translations, as ids without end tokens, that are too long to be scored.

    Raises:
        LongTargetError: For the first of them.
    """
    for index, ids in enumerate(targets):
        if len(ids) > MAX_TARGET_LENGTH:
            raise LongTargetError(index, len(ids))


def perplexity(found: Iterable[Likelihood]) -> float:
    """exp of the mean negative log-probability of a token, over all translations.

    Args:
        found: What a `LikelihoodScorer` gave.

    Raises:
        ValueError: If there are no tokens.

    Example:

    >>> round(perplexity([Likelihood((9, 3), (-1.0, -2.0))]), 4)
    4.4817
    """
    total, tokens = 0.0, 0
    for one in found:
        total += one.total
        tokens += len(one.tokens)
    return perplexity_of(total, tokens)


def perplexity_of(log_probability: float, tokens: int) -> float:
    """exp(-log_probability / tokens); infinite where a float cannot hold it.

    Raises:
        ValueError: If there are no tokens.
    """
    if not tokens:
        raise ValueError("no tokens to take a mean of: every pair is blank, or there is none.")
    mean = log_probability / tokens
    return math.exp(-mean) if mean > -700 else math.inf


class LikelihoodScorer:
    """Scores given translations of lines of text, by forced decoding.

        log P(y | x) = sum over t of log P(y_t | y_<t, x),  the end token included

    Made by `LikelihoodScorer.load`, or from parts. Sources are encoded as for
    a translation, so too long ones are cut; targets as in training, and whole.
    A pair's score does not depend on the others.

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
        self._batch_tokens = min(_LOGITS // target_tokenizer.vocabulary_size, _MOST_TOKENS)
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
        which: str | int = "best",
        ensemble: Sequence[str | os.PathLike[str]] = (),
        notice: Callable[[str], None] | None = None,
    ) -> LikelihoodScorer:
        """Loads the scorer of a run directory.

        Args:
            path: The run directory.
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
            ensemble: Directories of other runs with the same vocabularies; probabilities are
                then the mean of all.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.

        Raises:
            InputError: If `path` is not a run with a trained model.
        """
        run = Run.open(path, notice=notice)
        run.require_weights(which)
        return cls(
            load_models(run, ensemble, which, notice),
            run.source_tokenizer,
            run.target_tokenizer,
            run.settings.data.max_source_length,
        )

    def __call__(self, sources: Sequence[str], targets: Sequence[str]) -> list[Likelihood]:
        """Scores translations of lines.

        Of two blank lines there is nothing to score: no tokens, and 0 in all. A
        blank line beside text is what it is: the end token alone.

        Args:
            sources: Lines of text.
            targets: As many lines, the translation of each.

        Returns:
            As many `Likelihood`.

        Raises:
            TypeError: If `sources` or `targets` is one string.
            ValueError: If there are not as many of both.
            InputError: If a translation is longer than `MAX_TARGET_LENGTH` tokens, as a
                `LongTargetError`; if the model gives no finite numbers.
        """
        if isinstance(sources, str) or isinstance(targets, str):
            raise TypeError("`sources` and `targets` must be lists of strings, received a string.")
        return self.of_tokens(sources, self.target_tokenizer.encode(targets))

    def of_tokens(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Likelihood]:
        """As `__call__`, of translations as ids without end tokens: those that a search found."""
        if len(sources) != len(targets):
            raise ValueError(f"received {len(sources)} sources and {len(targets)} targets.")
        check_target_lengths(targets)
        source_ids, cut = encode_sources(sources, self._source_tokenizer, self._max_source_length)
        # Stable, so equal inputs in equal order make equal batches.
        order = sorted(
            (i for i in range(len(targets)) if source_ids[i] or targets[i]),
            key=lambda i: (-len(targets[i]), -len(source_ids[i])),
        )
        results = [Likelihood((), ())] * len(targets)
        for rows in self._batches(order, source_ids, targets):
            scores = self._scores([source_ids[i] for i in rows], [targets[i] for i in rows])
            for i, values in zip(rows, scores, strict=True):
                tokens = (*targets[i], EOS)
                results[i] = Likelihood(
                    tokens, tuple(values[: len(tokens)].tolist()), len(source_ids[i]), cut[i]
                )
        return results

    def _batches(
        self, order: list[int], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> Iterator[list[int]]:
        rows: list[int] = []
        longest = 0
        for i in order:
            longest = max(longest, len(sources[i]) + 1, len(targets[i]) + 1)
            if rows and (len(rows) + 1) * longest > self._batch_tokens:
                yield rows
                rows, longest = [], max(len(sources[i]), len(targets[i])) + 1
            rows.append(i)
        if rows:
            yield rows

    def _scores(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> np.ndarray:
        scores = self._score(
            backend.padded([[*ids, EOS] for ids in sources]),
            backend.padded([[BOS, *ids] for ids in targets]),
            backend.padded([[*ids, EOS] for ids in targets]),
        )
        found = np.asarray(keras.ops.convert_to_numpy(scores), np.float64)[: len(targets)]
        if not np.isfinite(found).all():
            raise InputError(
                "the model gives log-probabilities that are not finite numbers: its weights are "
                "damaged, or the training diverged; take another checkpoint"
            )
        return found
