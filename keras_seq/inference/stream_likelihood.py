"""Log-probabilities of a text whose lines may depend on those before."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from keras_seq.inference.likelihood import Likelihood, LikelihoodScorer
from keras_seq.settings import Settings
from keras_seq.text import BOS_ID, EOS_ID

# Pieces that are read as one by a model that carries its state, for more context.
_PIECES = 16


def text_likelihoods(
    scorer: LikelihoodScorer, lines: Sequence[str], settings: Settings
) -> list[Likelihood]:
    """Scores each line of a text with a language model that was trained with `settings`.

    With `data.packed`, a line is scored given the lines before it, otherwise alone.
    """
    if not settings.data.packed:
        return scorer([""] * len(lines), lines)
    pieces = _PIECES if settings.training.carry_state else 1
    return stream_likelihoods(scorer, lines, pieces * settings.data.max_target_length)


def stream_likelihoods(
    scorer: LikelihoodScorer, lines: Sequence[str], length: int
) -> list[Likelihood]:
    """Scores each line of a text, given the lines before it, with a model of packed text.

    The model reads pieces of `length` tokens, as in training. Each piece begins half a piece after
    the one before, and only its second half counts, so that every token but those of the first
    piece has at least half a piece of context.

    Args:
        scorer: The model and its tokenizer.
        lines: The lines of one text. Empty lines are part of it.
        length: Tokens of a piece, at least 2: the `data.max_target_length` of the training.

    Returns:
        A `Likelihood` for each line, with its end token. Begin tokens between two lines, which a
        model of packed text predicts as well, are left out: they are certain.
    """
    rows = scorer.target_tokenizer.encode(list(lines))
    stream = list(itertools.chain.from_iterable([BOS_ID, *row, EOS_ID] for row in rows))[1:]
    step = max(1, length // 2)
    starts = range(0, max(1, len(stream) - length + step), step)
    # The scorer adds an end token to each piece, which does not count.
    pieces = [stream[start : start + length] for start in starts]
    found = scorer.of_tokens([""] * len(pieces), pieces)
    values: list[float] = []
    for start, piece, likelihood in zip(starts, pieces, found, strict=True):
        values += likelihood.log_probabilities[len(values) - start : len(piece)]
    results = []
    place = 0
    for row in rows:
        tokens = (*row, EOS_ID)
        results.append(Likelihood(tokens, tuple(values[place : place + len(tokens)])))
        place += len(tokens) + 1
    return results
