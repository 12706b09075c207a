"""A penalty for source tokens that a translation hardly looked at."""

from keras import ops

# Shape letters: B batch, K beam, S source steps.

# Of a source token that nothing looked at; log 0 would outweigh all else for ever.
_LEAST = 1e-10


def coverage_score(attention, mask, penalty):
    """What is added to the normalised score of a hypothesis; 0 at most.

        cp(x, y) = penalty * sum_i log(min(sum_t a_ti, 1))

    Where nothing looked at a token its sum counts as 1e-10.

    Args:
        attention: Float tensor `(B, K, S)`, the attention that each source token
            received, summed over the steps of the hypothesis.
        mask: Bool tensor `(B, S)`, True where a source token is.
        penalty: Float, 0 or more; beta in the paper.

    Returns:
        Float32 tensor `(B, K)`.

    Reference:
        Wu et al., "Google's Neural Machine Translation System", 2016,
        section 7, equation 14, https://arxiv.org/abs/1609.08144
    """
    seen = ops.clip(ops.cast(attention, "float32"), _LEAST, 1.0)
    logs = ops.where(mask[:, None], ops.log(seen), 0.0)
    return penalty * ops.sum(logs, axis=-1)
