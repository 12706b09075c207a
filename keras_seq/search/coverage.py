"""Penalty for source tokens that receive little attention."""

from typing import Any

from keras import ops

# Shape letters: B batch, K beam, S source steps.

# Attention of a source token without any, because log 0 would outweigh all other terms.
_MIN_ATTENTION = 1e-10


def coverage_score(attention: Any, mask: Any, penalty: float) -> Any:
    """Computes the coverage term of the score of a hypothesis, at most 0.

        cp(x, y) = penalty * sum_i log(min(sum_t a_ti, 1))

    A source token without attention counts as 1e-10.

    Args:
        attention: Float tensor `(B, K, S)`, the attention to each source token, summed over the
            steps of the hypothesis.
        mask: Bool tensor `(B, S)`, True at source tokens.
        penalty: Float, 0 or more; beta in the paper.

    Returns:
        Float32 tensor `(B, K)`.

    Reference:
        Wu et al., "Google's Neural Machine Translation System", 2016,
        section 7, equation 14, https://arxiv.org/abs/1609.08144
    """
    total = ops.clip(ops.cast(attention, "float32"), _MIN_ATTENTION, 1.0)
    logs = ops.where(mask[:, None], ops.log(total), 0.0)
    return penalty * ops.sum(logs, axis=-1)
