"""Which slots of an unordered cache are the past of which hypothesis."""

from keras import ops

from keras_seq.layers.scaled_dot_product import MASKED

# Shape letters: B batch, K beam, L steps the cache holds.


def record_step(ancestors, position):
    """Notes that hypothesis k stands in slot k at step `position`.

    Args:
        ancestors: Int32 tensor `(B, K, L)`: the slot that the hypothesis' past
            occupied at each earlier step, -1 at steps not yet taken.
        position: Integer scalar tensor.

    Returns:
        The new `(B, K, L)`.
    """
    _, beam, steps = ops.shape(ancestors)
    now = ops.equal(ops.arange(steps), ops.cast(position, "int32"))
    return ops.where(now[None, None, :], ops.arange(beam)[None, :, None], ancestors)


def ancestry_bias(ancestors):
    """Float32 bias `(B, K, L, K)`: 0 on a hypothesis' own past, hidden elsewhere.

    Reordering hypotheses then means to gather this small table of integers;
    the keys and values, hundreds of times its size, are never moved.
    """
    beam = ops.shape(ancestors)[1]
    own = ops.equal(ancestors[..., None], ops.arange(beam))  # (B, K, L, K)
    return ops.where(own, 0.0, MASKED)
