"""Cross-entropy with a weight per token, reduced over any axes."""

from typing import Any

from keras import ops

from keras_seq.losses.sequence_cross_entropy import token_losses


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
) -> Any:
    """Weighted cross-entropy of tokens, reduced over steps, batch, both or neither.

        l_bt = -w_bt log softmax(logits_bt)[target_bt]
        loss = sum of l_bt / sum of w_bt           averaged
        loss = sum of l_bt / number of w_bt != 0   summed

    This is the counterpart of `tfa.seq2seq.sequence_loss`. Use it to report or optimize a loss per
    sequence or step. For training a model prefer `SequenceCrossEntropy`, which equals the default
    and finds the padding itself.

    Shapes: B batch, T target steps, V vocabulary.

    Args:
        logits: Float tensor `(B, T, V)`.
        targets: Integer ids `(B, T)`.
        weights: Float or bool tensor `(B, T)`, 0 at padding. Logits with weight 0, even NaN,
            affect neither loss nor gradient.
        average_across_timesteps, average_across_batch: Booleans, whether to average over T and B.
        sum_over_timesteps, sum_over_batch: Booleans, whether to sum over T and B.

    Returns:
        Float32 tensor: a scalar if reduced over both axes, `(B,)` over steps, `(T,)` over the
        batch, `(B, T)` over neither. 0 where all weights are 0.

    Raises:
        ValueError: If both an average and a sum are requested, or a tensor has the wrong rank.

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
            "To sum, set both averages to False."
        )
    expected = {"logits": "(B, T, V)", "targets": "(B, T)", "weights": "(B, T)"}
    tensors = (logits, targets, weights)
    for (name, shape), tensor in zip(expected.items(), tensors, strict=True):
        if len(tensor.shape) != shape.count(",") + 1:
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
