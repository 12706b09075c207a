"""Choice of the output with the highest expected score: minimum Bayes risk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_seq import backend
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.scoring import bleu_tokenizer, pairwise_scores
from keras_seq.search.scores import length_penalty
from keras_seq.settings import SearchSettings
from keras_seq.text import InputError


def rerank(
    hypotheses: Sequence[Hypothesis], search: SearchSettings, *, tokenize: str = "auto"
) -> list[Hypothesis]:
    """Sorts the hypotheses of one source by their expected score, best first.

    The expected score is the mean of the scores of a text with each text as reference, weighted by
    the probability of the reference: for a beam, its normalized log-probability times the mean
    norm. Equal texts are one. The `score` of a hypothesis becomes its
    expected score, 0 to 100.

    Reference:
        Kumar and Byrne, "Minimum Bayes-Risk Decoding for Statistical Machine Translation",
        NAACL 2004; for samples: Eikema and Aziz, "Is MAP Decoding All You Need?", COLING 2020

    Args:
        hypotheses: All hypotheses of a beam, or samples.
        search: Settings of the search that found them; `rerank` is the metric.
        tokenize: The tokenizer of BLEU; `"auto"` for one that fits the texts.
    """
    if not hypotheses:
        return []
    first: dict[str, Hypothesis] = {}
    weights: dict[str, float] = {}
    for hypothesis, weight in zip(hypotheses, _probabilities(hypotheses, search), strict=True):
        first.setdefault(hypothesis.text, hypothesis)
        weights[hypothesis.text] = weights.get(hypothesis.text, 0.0) + weight
    texts = list(first)
    scores = pairwise_scores(texts, search.rerank, tokenize=tokenize)
    expected = scores @ np.array([weights[text] for text in texts])
    # A stable sort keeps the order of the search for equal scores.
    order = np.argsort(-expected, kind="stable")
    return [first[texts[i]]._replace(score=float(expected[i])) for i in order[: search.n_best]]


def require_bleu_tokenizer(name: str) -> None:
    """Raises InputError if a package or file of a tokenizer of BLEU is missing."""
    try:
        bleu_tokenizer(None if name == "auto" else name)
    except ValueError as error:
        raise InputError(f"score.tokenize: {error}") from None


def _probabilities(hypotheses: Sequence[Hypothesis], search: SearchSettings) -> np.ndarray:
    """Returns the probability of each hypothesis among them, adjusted for its length.

    Probabilities themselves would favor short texts, as in a search without normalization. So the
    normalized log-probability of each hypothesis is multiplied by the same norm, their mean.
    """
    if search.method == "sampling":
        # A probable text is drawn more often.
        return np.full(len(hypotheses), 1 / len(hypotheses))
    lengths = np.array([len(one.tokens) + one.ended for one in hypotheses])
    norms = length_penalty(lengths, search.length_normalization, search.alpha)
    norm = backend.to_numpy(norms).mean()
    logarithms = norm * np.array([one.score for one in hypotheses])
    probabilities = np.exp(logarithms - logarithms.max())
    return np.asarray(probabilities / probabilities.sum())
