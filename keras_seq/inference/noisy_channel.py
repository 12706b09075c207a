"""Choice among translations by models of the opposite direction and of the target language."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from keras_seq.inference.hypothesis import Hypothesis, LineTranslator
from keras_seq.inference.likelihood import LikelihoodScorer
from keras_seq.inference.predictor import check_pairs
from keras_seq.inference.reranking import require_bleu_tokenizer
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.scoring import choose_bleu_tokenizer, score
from keras_seq.text import InputError

# Weights that `tune` tries, for each model.
_TRIED = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


class ChannelWeights(NamedTuple):
    """The weights of the reverse model and of the language model; that of the run is 1."""

    reverse: float = 0.5
    language_model: float = 0.0


class Tuning(NamedTuple):
    """The weights that `NoisyChannelTranslator.tune` chose, and the scores with and without."""

    weights: ChannelWeights
    before: float
    after: float


class _Candidate(NamedTuple):
    hypothesis: Hypothesis
    # log P(x | y) and log P(y), divided by the number of tokens of x.
    reverse: float
    language_model: float

    def score(self, weights: ChannelWeights) -> float:
        others = weights.reverse * self.reverse + weights.language_model * self.language_model
        return self.hypothesis.score + others


class NoisyChannelTranslator(LineTranslator):
    """Translates with the help of a model of the opposite direction and of a language model.

        score of y = s(y | x) + (a log P(x | y) + b log P(y)) / length of x

    for each candidate y of the search; s is the score of the search. The reverse model prefers
    translations that say all that the source says, and the language model those that read well.

    Args:
        translator: The translator; its `n_best` are the candidates.
        reverse: Scores sources, given a translation.
        language_model: Scores translations; None for no language model.
        weights: The weights a and b.
        tokenize: The tokenizer of BLEU, for `tune`; `"auto"` for one that fits the references.

    Example:

    >>> translator = NoisyChannelTranslator.load(  # doctest: +SKIP
    ...     "runs/ende", reverse="runs/deen", language_model="runs/german"
    ... )
    >>> translator(["A dog runs."])  # doctest: +SKIP
    ['Ein Hund rennt.']

    Reference:
        Yee et al., "Simple and Effective Noisy Channel Modeling for Neural Machine Translation",
        EMNLP 2019, https://arxiv.org/abs/1908.05731
    """

    def __init__(
        self,
        translator: Translator,
        reverse: LikelihoodScorer,
        language_model: LikelihoodScorer | None = None,
        weights: ChannelWeights | None = None,
        tokenize: str = "auto",
    ) -> None:
        self.weights = weights or ChannelWeights()
        self._translator = translator
        self._reverse = reverse
        self._language_model = language_model
        self._tokenize = tokenize

    @classmethod
    def load(
        cls,
        run: str | os.PathLike[str],
        *,
        reverse: str | os.PathLike[str],
        language_model: str | os.PathLike[str] | None = None,
        weights: ChannelWeights | None = None,
        candidates: int = 16,
        which: str | int = "best",
        notice: Callable[[str], None] | None = None,
        **search: Any,
    ) -> Self:
        """Loads three runs.

        Args:
            run: The run directory that translates.
            reverse: A run that translates in the opposite direction. Its vocabulary may be another.
            language_model: A run of a language model of the target language.
            weights: The weights; see `tune`.
            candidates: The number of translations to choose from.
            which: Checkpoint of `run`: `"best"`, `"latest"`, or the step of a stored checkpoint.
            notice: Receives a line for each damaged checkpoint that is skipped.
            **search: Search settings that replace those of `run`.

        Raises:
            InputError: A directory is not a trained run of the right task.
            SettingsError: A search setting is unknown or out of bounds.
        """
        runs = [Run.open(path, notice=notice) for path in (run, reverse)]
        for path, opened in zip((run, reverse), runs, strict=True):
            opened.require_task("translate")
            if opened.languages:
                raise InputError(f"{path}: a run of several target languages, expected one of one")
        scorer = None
        if language_model is not None:
            Run.open(language_model, notice=notice).require_task("language-model")
            scorer = LikelihoodScorer.load(language_model, notice=notice)
        search = runs[0].settings.search.of_candidates(candidates, search)
        return cls(
            Translator.load(run, which=which, notice=notice, **search),
            LikelihoodScorer.load(reverse, notice=notice),
            scorer,
            weights,
            runs[0].settings.score.tokenize,
        )

    @property
    def has_language_model(self) -> bool:
        return self._language_model is not None

    def translate(self, lines: Sequence[str], *, to: str | None = None) -> list[list[Hypothesis]]:
        """Returns the candidates of each line, best first; none for a blank line.

        The `score` of a hypothesis is that of the three models.
        """
        return [self._ranked(row, self.weights) for row in self._candidates(lines, to)]

    def tune(
        self, sources: Sequence[str], references: Sequence[str], *, metric: str = "bleu"
    ) -> Tuning:
        """Chooses the weights with the best score of the translations of `sources`.

        Args:
            sources: Lines that no model was trained on, such as the validation text of the run.
            references: Their translations.
            metric: `"bleu"`, `"chrf"` or `"exact"`.

        Raises:
            ValueError: The numbers of sources and references differ, or there are none.
            InputError: A package or file of the tokenizer of BLEU is missing.
        """
        check_pairs(sources=sources, references=references)
        if metric == "bleu":
            require_bleu_tokenizer(self._tokenize)
        rows = self._candidates(sources)
        others = _TRIED if self._language_model is not None else (0.0,)
        # The first of equal scores is kept, so that a model without an effect has no weight.
        tried = [ChannelWeights(*pair) for pair in itertools.product(_TRIED, others)]
        scores = [self._score(rows, references, weights, metric) for weights in tried]
        best = int(np.argmax(scores))
        self.weights = tried[best]
        return Tuning(self.weights, scores[0], scores[best])

    def _score(
        self,
        rows: Sequence[Sequence[_Candidate]],
        references: Sequence[str],
        weights: ChannelWeights,
        metric: str,
    ) -> float:
        ranked = (self._ranked(row, weights) for row in rows)
        texts = [row[0].text if row else "" for row in ranked]
        tokenize = self._tokenize
        if tokenize == "auto":
            tokenize = choose_bleu_tokenizer(references)
        (value,) = score(texts, [references], metrics=[metric], tokenize=tokenize)
        return value.value

    def _ranked(
        self, candidates: Sequence[_Candidate], weights: ChannelWeights
    ) -> list[Hypothesis]:
        scored = [one.hypothesis._replace(score=one.score(weights)) for one in candidates]
        return sorted(scored, key=lambda one: -one.score)

    def _candidates(self, lines: Sequence[str], to: str | None = None) -> list[list[_Candidate]]:
        found = self._translator.translate(lines, to=to)
        texts = [one.text for row in found for one in row]
        sources = [line for line, row in zip(lines, found, strict=True) for _ in row]
        # The model of the opposite direction reads the translation.
        reverse = self._reverse(texts, sources)
        lengths = [max(len(one.tokens), 1) for one in reverse]
        fluency = [0.0] * len(texts)
        if self._language_model is not None:
            fluency = [one.total for one in self._language_model([""] * len(texts), texts)]
        values = zip(
            [one.total / length for one, length in zip(reverse, lengths, strict=True)],
            [total / length for total, length in zip(fluency, lengths, strict=True)],
            strict=True,
        )
        return [[_Candidate(one, *next(values)) for one in row] for row in found]
