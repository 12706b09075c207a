"""Scores of hypotheses: length normalization, coverage and forced decoding."""

from typing import Any

from keras import ops

from keras_seq import backend

# Shape letters: B batch, K beam, S source steps, T target steps, V vocabulary.

NORMALIZATIONS = ("average", "gnmt", "none")
# Minimum attention of a source token. Without it, log 0 would outweigh all other terms.
_MIN_ATTENTION = 1e-10


def length_penalty(lengths: Any, normalization: str = "average", alpha: float = 1.0) -> Any:
    """Computes the divisor of the summed log-probability of a hypothesis.

        average:  T ^ alpha
        gnmt:     ((5 + T) / 6) ^ alpha
        none:     1

    Args:
        lengths: Integer tensor of any shape, T, the number of tokens with the end token.
        normalization: `"average"`, `"gnmt"` or `"none"`.
        alpha: Float, 0 or more.

    Returns:
        Float32 tensor of the shape of `lengths`.

    Raises:
        ValueError: If `normalization` is unknown or `alpha` is negative.

    Reference:
        Wu et al., "Google's Neural Machine Translation System", 2016, section 7,
        https://arxiv.org/abs/1609.08144
    """
    if normalization not in NORMALIZATIONS:
        raise ValueError(
            f"`length_normalization` must be one of {', '.join(NORMALIZATIONS)}, "
            f"received {normalization!r}."
        )
    if alpha < 0:
        raise ValueError(f"`alpha` must be 0 or more, received {alpha!r}.")
    lengths = ops.cast(lengths, "float32")
    if normalization == "average":
        return ops.power(lengths, alpha)
    if normalization == "gnmt":
        return ops.power((5.0 + lengths) / 6.0, alpha)
    return ops.ones_like(lengths)


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


def forced_scores(model: Any, source: Any, target_input: Any, target_output: Any) -> Any:
    """Computes the log-probability of each token of reference targets.

        log P(y_t | y_<t, x)

    Args:
        model: A model of `keras_seq.models`.
        source: Int tensor `(B, S)`, padded with 0, or any other input of the model's encoder.
        target_input: Int tensor `(B, T)`, start token first.
        target_output: Int tensor `(B, T)`, end token last, padded with 0.

    Returns:
        Float32 tensor `(B, T)`, 0 at padding.
    """
    inputs = {"source": source, "target": target_input}
    logits = backend.call_model(model, inputs, training=False)
    logits = ops.cast(logits, "float32")
    picked = ops.take_along_axis(logits, ops.cast(target_output, "int32")[..., None], axis=-1)
    scores = picked[..., 0] - ops.logsumexp(logits, axis=-1)
    return ops.where(ops.equal(target_output, 0), 0.0, scores)
