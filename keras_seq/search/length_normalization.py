"""Length normalization of the log-probability of a hypothesis."""

from typing import Any

from keras import ops

NORMALIZATIONS = ("average", "gnmt", "none")


def length_penalty(lengths: Any, normalization: str = "average", alpha: float = 1.0) -> Any:
    """Computes the divisor of the summed log-probability of a hypothesis.

        average:  T ^ alpha
        gnmt:     ((5 + T) / 6) ^ alpha
        none:     1

    T counts the end token.

    Args:
        lengths: Integer tensor of any shape, T.
        normalization: `"average"`, `"gnmt"` or `"none"`.
        alpha: Float, 0 or more.

    Returns:
        Float32 tensor of the shape of `lengths`.

    Raises:
        ValueError: If `normalization` is unknown or `alpha` is negative.

    Reference:
        Wu et al., "Google's Neural Machine Translation System", 2016,
        section 7, https://arxiv.org/abs/1609.08144
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
