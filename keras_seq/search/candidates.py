"""The best continuations of the hypotheses of a row."""

from keras import ops

from keras_seq.backend import gather
from keras_seq.search.hypotheses import NEG_INF
from keras_seq.search.top_k import top_k

# Shape letters: B batch, K beam, W wanted, V vocabulary.


def best_of_logits(scores, logits, count, forbidden_tokens, may_end, end_token):
    """The W best continuations, where only few tokens are struck out, the same for all.

    Drawn for each hypothesis first, and before the logits are normalised and
    the forbidden ones struck out, so that the vocabulary is passed over seldom.

    Args:
        scores: Float32 tensor `(B, K)`, the summed log-probability so far.
        logits: Float32 tensor `(B, K, V)`.
        count: Integer W; there are fewer where K hypotheses have not so many tokens.
        forbidden_tokens: Ids that are struck out.
        may_end: Bool tensor `(B,)`: whether the end token is not; or None: it never is.
        end_token: The end token's id.

    Returns:
        Sums, tokens and parents, each `(B, W)`, best first; sums of `NEG_INF` are none.
    """
    vocabulary = logits.shape[-1]
    forbidden = sorted({token for token in forbidden_tokens if token < vocabulary})
    # So many more than are wanted that enough remain without the forbidden ones.
    each = min(count + len(forbidden) + (may_end is not None), vocabulary)
    best, tokens = top_k(logits, each)  # (B, K, each)
    # log P of the likeliest is that of its softmax, which costs less than a logsumexp.
    likeliest = ops.log(gather(ops.softmax(logits, axis=-1), tokens[..., :1]))
    totals = scores[..., None] + (likeliest + (best - best[..., :1]))
    if forbidden:
        struck = ops.any(ops.equal(tokens[..., None], ops.array(forbidden, "int32")), axis=-1)
        totals = ops.where(struck, NEG_INF, totals)
    if may_end is not None:
        early = ops.logical_and(
            ops.equal(tokens, end_token), ops.logical_not(may_end)[:, None, None]
        )
        totals = ops.where(early, NEG_INF, totals)
    return _best(totals, tokens, count)


def best_of_log_probabilities(scores, log_probabilities, count):
    """The W best continuations of any log-probabilities.

    Args:
        scores: Float32 tensor `(B, K)`, the summed log-probability so far.
        log_probabilities: Float32 tensor `(B, K, V)`, `NEG_INF` where a token is struck out.
        count: Integer W, as above.

    Returns:
        As `best_of_logits`.
    """
    best, tokens = top_k(log_probabilities, min(count, log_probabilities.shape[-1]))
    return _best(scores[..., None] + best, tokens, count)


def _best(totals, tokens, count):
    """Of `(B, K, each)` the W best of a row; ties to the earlier hypothesis, then the lower id."""
    beam, each = totals.shape[1:]
    totals = ops.reshape(ops.maximum(totals, NEG_INF), (-1, beam * each))
    totals, index = ops.top_k(totals, min(count, beam * each))  # (B, W)
    index = ops.cast(index, "int32")
    tokens = gather(ops.reshape(tokens, (-1, beam * each)), index)
    return totals, tokens, index // each
