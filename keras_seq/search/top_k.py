"""Top-k over a vocabulary."""

import math
from typing import Any

from keras import ops

from keras_seq import backend
from keras_seq.backend import gather

# Shape letters: B batch, K beam, V values, N count.


def top_k(values: Any, count: int) -> tuple[Any, Any]:
    """Computes `backend.top_k` along the last axis, faster if this axis is a vocabulary.

    The N largest values lie in the N blocks with the largest maxima, so only these blocks are
    searched. They are sorted by index, so ties go to the lower index, as in `backend.top_k`.
    The shape of `values` `(B, K, V)` must be static in K and V.
    """
    beam, size = values.shape[1], values.shape[2]
    block = _block_size(size, count)
    blocks = size // block
    # A matrix, because XLA has a top-k for matrices and sorts tensors of a higher rank.
    rows = ops.reshape(values, (-1, size))
    # If N blocks contain a large part of the values, searching all values is cheaper.
    if block == 1 or 4 * count > blocks:
        best, index = backend.top_k(rows, count)
    else:
        parts = ops.reshape(rows, (-1, blocks, block))
        _, best_blocks = backend.top_k(ops.max(parts, axis=-1), count)
        # Sorts the indices of the blocks. On TensorFlow, `ops.sort` takes twice as many operations.
        best_blocks = -backend.top_k(-best_blocks, count)[0]  # (B * K, N)
        candidates = gather(parts, best_blocks)  # (B * K, N, block)
        best, index = backend.top_k(ops.reshape(candidates, (-1, count * block)), count)
        index = gather(best_blocks, index // block) * block + index % block
    shape = (-1, beam, count)
    return ops.reshape(best, shape), ops.reshape(index, shape)


def _block_size(size: int, count: int) -> int:
    """Returns the divisor of `size` with the fewest searched values: all maxima plus N blocks."""
    divisors = (block for block in range(1, math.isqrt(size) + 1) if size % block == 0)
    return min(divisors, key=lambda block: size // block + count * block)
