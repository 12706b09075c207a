"""Scores of every text of a list against every other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from .bleu_tokenizers import bleu_tokenizer
from .metric_choice import choose_bleu_tokenizer

# The n-grams of each text are counted once: for 16 texts of 12 words, chrF takes 4 ms, and 40 ms by
# sacreBLEU's scores of single pairs.
_CHARACTER_ORDER, _WORD_ORDER = 6, 4
# chrF2 gives recall four times the weight of precision.
_BETA_SQUARED = 4.0

PAIRWISE_METRICS = ("chrf", "bleu", "exact")


def pairwise_scores(
    texts: Sequence[str], metric: str, *, tokenize: str | None = None
) -> np.ndarray:
    """Scores each text against each other, as sacreBLEU scores single sentences.

    Args:
        texts: N texts.
        metric: `"chrf"` for chrF2, `"bleu"` for sentence BLEU with exponential smoothing and an
            effective order, or `"exact"`, 100 for equal texts and else 0.
        tokenize: The tokenizer of BLEU, one of `TOKENIZERS`; None is the default of sacreBLEU,
            `"13a"`, and `"auto"` chooses one that fits the texts.

    Returns:
        Float64 `(N, N)`, 0 to 100: the score of the text of the row, with the text of the column
        as reference.

    Raises:
        ValueError: The metric or the tokenizer is unknown, or a package or file of the tokenizer is
            missing.

    Example:

    >>> pairwise_scores(["a dog", "a dog", "a cat"], "exact")[0].tolist()
    [100.0, 100.0, 0.0]
    """
    if metric not in PAIRWISE_METRICS:
        names = ", ".join(PAIRWISE_METRICS)
        raise ValueError(f"unknown metric {metric!r}, expected one of {names}")
    if not texts:
        return np.zeros((0, 0))
    functions: dict[str, Callable[[Sequence[str]], np.ndarray]]
    if metric == "bleu" and tokenize == "auto":
        tokenize = choose_bleu_tokenizer(texts)
    functions = {"chrf": _chrf, "bleu": partial(_bleu, tokenize=tokenize), "exact": _exact}
    return functions[metric](texts)


def _exact(texts: Sequence[str]) -> np.ndarray:
    column = np.array([text.strip() for text in texts], object)
    return 100.0 * (column[:, None] == column[None, :])


def _chrf(texts: Sequence[str]) -> np.ndarray:
    """Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015."""
    precision, recall, orders = (np.zeros((len(texts), len(texts))) for _ in range(3))
    characters = ["".join(text.split()) for text in texts]
    for order in range(1, _CHARACTER_ORDER + 1):
        matches, totals = _matches(characters, order)
        # sacreBLEU skips the orders for which one of the two texts is too short.
        both = (totals[:, None] > 0) & (totals[None, :] > 0)
        orders += both
        precision += np.where(both, matches / np.maximum(totals[:, None], 1), 0)
        recall += np.where(both, matches / np.maximum(totals[None, :], 1), 0)
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    denominator = _BETA_SQUARED * precision + recall
    score = (1 + _BETA_SQUARED) * precision * recall / np.where(denominator > 0, denominator, 1)
    return 100 * score


# Some tokenizers read a dictionary.
@lru_cache(maxsize=4)
def _bleu_metric(tokenize: str | None) -> BLEU:
    return BLEU(effective_order=True, tokenize=bleu_tokenizer(tokenize))


def _bleu(texts: Sequence[str], tokenize: str | None) -> np.ndarray:
    metric = _bleu_metric(tokenize)
    words = [tuple(metric.tokenizer(text).split()) for text in texts]
    orders = [_matches(words, order) for order in range(1, _WORD_ORDER + 1)]
    scores = np.zeros((len(texts), len(texts)))
    for i, j in np.ndindex(scores.shape):
        score = metric.compute_bleu(
            correct=[int(matches[i, j]) for matches, _ in orders],
            total=[int(totals[i]) for _, totals in orders],
            sys_len=len(words[i]),
            ref_len=len(words[j]),
            smooth_method="exp",
            effective_order=True,
        )
        scores[i, j] = score.score
    return scores


def _matches(texts: Sequence[Sequence[str]], order: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the clipped matches of n-grams `(N, N)` and the numbers of n-grams `(N,)`."""
    counts = [
        Counter(text[start : start + order] for start in range(len(text) - order + 1))
        for text in texts
    ]
    positions = {ngram: i for i, ngram in enumerate(dict.fromkeys(g for c in counts for g in c))}
    table = np.zeros((len(texts), max(len(positions), 1)), np.int64)
    for row, counter in enumerate(counts):
        table[row, [positions[ngram] for ngram in counter]] = list(counter.values())
    matches = np.stack([np.minimum(table, row).sum(axis=1) for row in table], axis=1)
    return matches, table.sum(axis=1)
