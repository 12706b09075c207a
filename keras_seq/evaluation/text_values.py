"""Metrics of translations, and the perplexity of texts, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from keras_seq.evaluation.resampling import SEED, resampled
from keras_seq.evaluation.values import MetricValue
from keras_seq.inference.likelihood import Likelihood, perplexity_of
from keras_seq.scoring import Comparison, choose_bleu_tokenizer, scores_by_name
from keras_seq.text import InputError


def text_values(
    outputs: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str],
    tokenize: str,
    samples: int | None,
) -> dict[str, MetricValue]:
    """Computes metrics of translations; `tokenize` "auto" chooses the tokenizer of BLEU.

    `samples` is the number of bootstrap resamples, None for no confidence intervals.
    """
    if tokenize == "auto":
        tokenize = choose_bleu_tokenizer(references)
    scores = scores_by_name(
        outputs,
        [references],
        metrics,
        confidence=samples is not None,
        samples=samples,
        tokenize=tokenize,
    )
    values = {}
    for name, score in scores.items():
        interval = (score.mean, score.interval) if isinstance(score, Comparison) else ()
        values[name] = MetricValue(score.name, score.value, score.signature, *interval)
    return values


def perplexity_value(likelihoods: Sequence[Likelihood], samples: int | None) -> MetricValue:
    """Computes the perplexity of texts, or raises InputError if there are no tokens."""
    totals = np.array([likelihood.total for likelihood in likelihoods])
    tokens = np.array([len(likelihood.tokens) for likelihood in likelihoods])
    if not tokens.any():
        raise InputError("no text, there is nothing to evaluate")
    signature = f"lines:{len(likelihoods)}|tokens:{tokens.sum()}|end:yes"
    if samples is not None:
        signature += f"|bs:{samples}|seed:{SEED}"

    def perplexity(counts: np.ndarray) -> float:
        size = int(counts @ tokens)
        return perplexity_of(float(counts @ totals), size) if size else math.inf

    mean, interval = resampled(perplexity, len(likelihoods), samples)
    value = perplexity_of(float(totals.sum()), int(tokens.sum()))
    return MetricValue("perplexity", value, signature, mean, interval)


def bits_per_character_value(
    likelihoods: Sequence[Likelihood], lines: Sequence[str], samples: int | None
) -> MetricValue:
    """Computes the bits that a character takes under a model, which any vocabulary may have.

        -sum over lines of log2 P(line) / (characters of the lines and their line ends)

    Lines without a likelihood do not count. Raises InputError if there are no others.
    """
    totals = np.array([likelihood.total for likelihood in likelihoods])
    characters = np.array(
        [
            len(line) + 1 if likelihood.tokens else 0
            for line, likelihood in zip(lines, likelihoods, strict=True)
        ]
    )
    if not characters.any():
        raise InputError("no text, there is nothing to evaluate")
    signature = f"lines:{len(lines)}|characters:{characters.sum()}|end:yes"
    if samples is not None:
        signature += f"|bs:{samples}|seed:{SEED}"

    def bits(counts: np.ndarray) -> float:
        size = counts @ characters
        return float(-(counts @ totals) / math.log(2) / size) if size else math.inf

    mean, interval = resampled(bits, len(lines), samples)
    value = bits(np.ones(len(lines)))
    return MetricValue("bits per character", value, signature, mean, interval, digits=3)
