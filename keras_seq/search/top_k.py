"""The largest few of many, as a search needs them at every step."""

import math

from keras import ops

from keras_seq.backend import gather

# Shape letters: B batch, K beam, V values, N wanted.


def top_k(values, count):
    """As `ops.top_k` along the last axis, faster where that is as long as a vocabulary.

    The N largest lie in the N blocks with the largest maxima, so only those
    are searched. They are searched in the order of their places, so that ties
    go to the lower index here, too.

    Args:
        values: Float tensor `(B, K, V)`; K and V known.
        count: Positive integer N, at most V.

    Returns:
        The values, largest first, and their int32 indices, each `(B, K, N)`.
    """
    beam, size = values.shape[1], values.shape[2]
    block = _block_size(size, count)
    blocks = size // block
    # One row for each hypothesis: XLA has a top-k for matrices, and sorts what has more axes.
    rows = ops.reshape(values, (-1, size))
    # Where the blocks to search are most of all, searching all at once is the cheaper way.
    if block == 1 or 4 * count > blocks:
        best, index = ops.top_k(rows, count)
        index = ops.cast(index, "int32")
    else:
        parts = ops.reshape(rows, (-1, blocks, block))
        _, chosen = ops.top_k(ops.max(parts, axis=-1), count)
        # What `ops.sort` does on TensorFlow, with half as many operations.
        chosen = -ops.top_k(-ops.cast(chosen, "int32"), count)[0]  # (B * K, N)
        found = gather(parts, chosen)  # (B * K, N, block)
        best, index = ops.top_k(ops.reshape(found, (-1, count * block)), count)
        index = ops.cast(index, "int32")
        index = gather(chosen, index // block) * block + index % block
    shape = (-1, beam, count)
    return ops.reshape(best, shape), ops.reshape(index, shape)


def _block_size(size, count):
    """The divisor by which the fewest are searched: maxima of all blocks, and N blocks."""
    divisors = (block for block in range(1, math.isqrt(size) + 1) if size % block == 0)
    return min(divisors, key=lambda block: size // block + count * block)
