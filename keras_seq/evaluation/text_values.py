"""Metrics of translations, and the perplexity of texts, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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
    tokens = [len(likelihood.tokens) for likelihood in likelihoods]
    return _per_unit("perplexity", ("tokens", tokens), likelihoods, perplexity_of, samples)


def bits_per_character_value(
    likelihoods: Sequence[Likelihood], lines: Sequence[str], samples: int | None
) -> MetricValue:
    """Computes the bits per character, which can be compared between vocabularies.

        -sum over lines of log2 P(line) / (characters of the lines and their line ends)

    Lines without a likelihood do not count. Raises InputError if there are no others.
    """
    characters = [
        len(line) + 1 if likelihood.tokens else 0
        for line, likelihood in zip(lines, likelihoods, strict=True)
    ]
    return _per_unit(
        "bits per character",
        ("characters", characters),
        likelihoods,
        lambda log_probability, count: -log_probability / math.log(2) / count,
        samples,
        digits=3,
    )


def _per_unit(
    name: str,
    units: tuple[str, Sequence[int]],
    likelihoods: Sequence[Likelihood],
    value_of: Callable[[float, int], float],
    samples: int | None,
    digits: int = 2,
) -> MetricValue:
    """Computes `value_of(total log-probability, number of units)`, with a confidence interval.

    `units` are their name and how many each line has.
    """
    unit, sizes = units[0], np.array(units[1])
    totals = np.array([likelihood.total for likelihood in likelihoods])
    if not sizes.any():
        raise InputError("no text, there is nothing to evaluate")
    signature = f"lines:{len(likelihoods)}|{unit}:{sizes.sum()}|end:yes"
    if samples is not None:
        signature += f"|bs:{samples}|seed:{SEED}"

    def metric(counts: np.ndarray) -> float:
        size = int(counts @ sizes)
        return value_of(float(counts @ totals), size) if size else math.inf

    mean, interval = resampled(metric, len(likelihoods), samples)
    value = metric(np.ones(len(likelihoods), np.int64))
    return MetricValue(name, value, signature, mean, interval, digits)
