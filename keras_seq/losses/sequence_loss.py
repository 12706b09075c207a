"""Cross-entropy of sequences by the weight of each token."""

from keras import ops

from keras_seq.losses.sequence_cross_entropy import token_losses

# Shape letters: B batch, T target steps, V vocabulary.


def sequence_loss(
    logits,
    targets,
    weights,
    average_across_timesteps=True,
    average_across_batch=True,
    sum_over_timesteps=False,
    sum_over_batch=False,
):
    """Weighted cross-entropy of tokens, over all of them, each sequence, each step or each token.

        l_bt = -w_bt log softmax(logits_bt)[target_bt]
        loss = sum of l_bt / sum of w_bt           averaged
        loss = sum of l_bt / number of w_bt != 0   summed

    The sums go over the axes that are named: `_timesteps`, `_batch`, both or
    neither. For training a model, `SequenceCrossEntropy` is the same as the
    default and finds the padding by itself; this one is for what is
    optimised or reported for each sequence or step.

    Shapes: B batch, T target steps, V vocabulary.

    Args:
        logits: Float tensor `(B, T, V)`.
        targets: Integer ids `(B, T)`.
        weights: Float or bool tensor `(B, T)`, 0 where padded. What is there,
            NaN included, reaches neither the loss nor the gradient.
        average_across_timesteps: Whether to average over T.
        average_across_batch: Whether to average over B.
        sum_over_timesteps: Whether to sum over T.
        sum_over_batch: Whether to sum over B.

    Returns:
        Float32 tensor: a scalar over both axes, `(B,)` over `_timesteps`,
        `(T,)` over `_batch`, `(B, T)` over neither; 0 where all weights are.

    Raises:
        ValueError: If an axis is averaged and another or the same summed, or
            the ranks are others.

    Example:

    >>> logits, targets = ops.zeros((2, 3, 4)), ops.ones((2, 3), "int32")
    >>> weights = ops.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    >>> round(float(sequence_loss(logits, targets, weights)), 4)
    1.3863
    >>> tuple(sequence_loss(logits, targets, weights, average_across_batch=False).shape)
    (2,)
    """
    averaged = (average_across_batch, average_across_timesteps)
    summed = (sum_over_batch, sum_over_timesteps)
    if any(averaged) and any(summed):
        raise ValueError(
            "Either average or sum, not both: received "
            f"average_across_timesteps={average_across_timesteps}, "
            f"average_across_batch={average_across_batch}, "
            f"sum_over_timesteps={sum_over_timesteps}, sum_over_batch={sum_over_batch}. "
            "To sum, switch off the averages, which are the default."
        )
    for name, tensor, rank in (
        ("logits", logits, 3),
        ("targets", targets, 2),
        ("weights", weights, 2),
    ):
        if len(tensor.shape) != rank:
            shape = "(B, T, V)" if rank == 3 else "(B, T)"
            raise ValueError(f"`{name}` must be {shape}, received shape {tuple(tensor.shape)}.")
    weights = ops.cast(weights, "float32")
    real = ops.not_equal(weights, 0)
    losses = token_losses(ops.cast(targets, "int32"), logits)
    losses = ops.where(real, losses, 0.0) * weights
    axes = [axis for axis, over in enumerate(averaged if any(averaged) else summed) if over]
    if not axes:
        return losses
    size = ops.sum(weights if any(averaged) else ops.cast(real, "float32"), axis=axes)
    return ops.sum(losses, axis=axes) / ops.where(ops.equal(size, 0), 1.0, size)
