"""The best continuations of the hypotheses of a row."""

from collections.abc import Sequence
from typing import Any

from keras import ops

from keras_seq import backend
from keras_seq.backend import gather
from keras_seq.search.hypotheses import NEG_INF
from keras_seq.search.top_k import top_k

# Shape letters: B batch, K beam, W candidates, V vocabulary.


def best_of_logits(
    scores: Any,
    logits: Any,
    count: int,
    forbidden_tokens: Sequence[int],
    may_end: Any,
    end_token: int,
) -> tuple[Any, Any, Any]:
    """Picks the W best continuations. All hypotheses have the same few forbidden tokens.

    The best tokens of each hypothesis are picked before the logits `(B, K, V)` are normalized and
    forbidden tokens are removed, to reduce the number of passes over the vocabulary. `may_end`
    `(B,)` is True where the end token is allowed; None if it always is. `scores` `(B, K)` are the
    summed log-probabilities.

    Returns sums, tokens and parents, each `(B, W)`, best first; W is at most the number of
    continuations. A sum of `NEG_INF` marks a missing continuation.
    """
    vocabulary = logits.shape[-1]
    forbidden = sorted({token for token in forbidden_tokens if token < vocabulary})
    # Picks enough tokens for W allowed tokens to remain after the forbidden tokens are removed.
    each = min(count + len(forbidden) + (may_end is not None), vocabulary)
    best, tokens = top_k(logits, each)  # (B, K, each)
    # On the whole vocabulary, a softmax is cheaper than a logsumexp.
    likeliest = ops.log(gather(ops.softmax(logits, axis=-1), tokens[..., :1]))
    totals = scores[..., None] + (likeliest + (best - best[..., :1]))
    if forbidden:
        is_forbidden = ops.any(ops.equal(tokens[..., None], ops.array(forbidden, "int32")), axis=-1)
        totals = ops.where(is_forbidden, NEG_INF, totals)
    if may_end is not None:
        is_early_end = ops.logical_and(
            ops.equal(tokens, end_token), ops.logical_not(may_end)[:, None, None]
        )
        totals = ops.where(is_early_end, NEG_INF, totals)
    return _best(totals, tokens, count)


def best_of_log_probabilities(
    scores: Any, log_probabilities: Any, count: int
) -> tuple[Any, Any, Any]:
    """Picks the W best continuations by log-probability `(B, K, V)`, `NEG_INF` if forbidden.

    Returns the same as `best_of_logits`.
    """
    best, tokens = top_k(log_probabilities, min(count, log_probabilities.shape[-1]))
    return _best(scores[..., None] + best, tokens, count)


def _best(totals: Any, tokens: Any, count: int) -> tuple[Any, Any, Any]:
    """Picks the W best totals. Ties go to the lower hypothesis index, then the lower token id."""
    beam, each = totals.shape[1:]
    totals = ops.reshape(ops.maximum(totals, NEG_INF), (-1, beam * each))
    totals, index = backend.top_k(totals, min(count, beam * each))  # (B, W)
    tokens = gather(ops.reshape(tokens, (-1, beam * each)), index)
    return totals, tokens, index // each
