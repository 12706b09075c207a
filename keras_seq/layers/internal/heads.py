"""The heads of a multi-head attention: their sizes, and one tensor taken apart into them."""

from keras import ops

from keras_seq.layers.internal.attention_scores import STEPS, check_axes, check_dropout
from keras_seq.layers.internal.shapes import add_bias, reshape

# Shape letters: B batch, H heads, T steps, F features, D size of a head.


def check_heads(num_heads, key_size, value_size, dropout):
    """Raises ValueError for what no multi-head attention can be made of."""
    if not isinstance(num_heads, int) or num_heads < 1:
        raise ValueError(f"`num_heads` must be a positive integer, received {num_heads!r}.")
    for name, size in (("key_size", key_size), ("value_size", value_size)):
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(f"`{name}` must be None or a positive integer, received {size!r}.")
    check_dropout(dropout)


def head_sizes(num_heads, key_size, value_size, name, shape):
    """Sizes of a head's keys and of its values, by the shape of the argument `name`."""
    check_axes(name, shape, STEPS)
    features = shape[-1]
    if features is None or (key_size is None and features % num_heads):
        raise ValueError(
            f"`num_heads` ({num_heads}) must divide the feature axis of `{name}`, "
            f"received the shape {tuple(shape)}: give `key_size` where it need not."
        )
    keys = features // num_heads if key_size is None else key_size
    return keys, keys if value_size is None else value_size


def project_heads(inputs, lengths, num_heads, kernel, bias, sizes):
    """`(B, T, F)` times `kernel` `(F, H * sum of sizes)` -> `(B, H, T, D)` for each size D.

    `lengths` are B and T, which a layer asks for once: for a single step, arithmetic on shapes
    costs as much as the products, and for many it takes longer to trace.
    """
    rows = add_bias(ops.matmul(ops.reshape(inputs, (-1, inputs.shape[-1])), kernel), bias)
    return split_heads(rows, lengths, num_heads, sizes)


def split_heads(rows, lengths, num_heads, sizes):
    """`(B * T, H * sum of sizes)` -> a tensor `(B, H, T, D)` for each size D."""
    if len(set(sizes)) > 1:
        ends = [num_heads * sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
        parts = ops.split(rows, ends, axis=-1)
        return [
            split_heads(part, lengths, num_heads, [size])[0]
            for part, size in zip(parts, sizes, strict=True)
        ]
    if len(sizes) == 1:
        projected = reshape(rows, (*lengths, num_heads, sizes[0]))
        return [ops.transpose(projected, (0, 2, 1, 3))]
    projected = reshape(rows, (*lengths, len(sizes), num_heads, sizes[0]))
    projected = ops.transpose(projected, (2, 0, 3, 1, 4))  # (parts, B, H, T, D)
    # Not by indexing: the gradient of a slice is a whole tensor of zeros around it.
    return ops.unstack(projected, len(sizes), axis=0)


def merge_heads(context, lengths, kernel, bias):
    """`(B, H, T, D)` as `(B, T, H * D)`, times `kernel` `(H * D, U)` -> `(B, T, U)`."""
    _, heads, _, size = context.shape
    rows = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (-1, heads * size))
    return reshape(add_bias(ops.matmul(rows, kernel), bias), (*lengths, kernel.shape[-1]))
