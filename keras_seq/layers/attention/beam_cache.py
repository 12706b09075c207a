"""Which slots of an unordered cache are the past of which hypothesis."""

import keras
from keras import ops, tree

from keras_seq.layers.internal.scaled_dot_product import MASKED

# Shape letters: B batch, K beam, L places of a cache, each with a slot for each hypothesis.


def update_ancestors(past, place):
    """Notes that hypothesis k stands in slot k of a place.

    Args:
        past: Bool tensor `(B, K, L, K)`: which slots hold the past of each hypothesis.
        place: Integer tensor `(B,)` or `()`.

    Returns:
        The new `(B, K, L, K)`.
    """
    _, beam, places, _ = ops.shape(past)
    now = ops.equal(ops.arange(places), ops.reshape(ops.cast(place, "int32"), (-1, 1)))
    own = ops.equal(ops.arange(beam)[:, None], ops.arange(beam))
    return ops.logical_or(past, ops.logical_and(now[:, None, :, None], own[None, :, None, :]))


def beam_cache_mask(past):
    """Float32 bias `(B, K, L, K)`: 0 on a hypothesis' own past, hidden elsewhere.

    Reordering hypotheses then means to gather this small table; the keys and values,
    hundreds of times its size, are never moved.
    """
    return ops.where(past, 0.0, MASKED)


def distances(bias, position):
    """How many steps ago each slot was written, for the hypothesis whose past it is.

    Slots lie in the order of their steps, and a hypothesis has one of each.

    Args:
        bias: Tensor `(B, K, P)` of P slots, from `beam_cache_mask`.
        position: Integer scalar tensor, the current step.

    Returns:
        Int32 tensor `(B, K, P)`, between 0 and `position + 1`; it means nothing
        where the bias hides.
    """
    seen = ops.cumsum(ops.cast(bias > MASKED / 2, "int32"), axis=-1)
    return ops.cast(position, "int32") + 1 - seen


def compact_cache(past, place, caches, length):
    """Adds places to be written, and gives up the slots that are nobody's past.

    Hypotheses that live share most of their past, so what is left is little more than
    a slot a step, and not K. A step reads all of a cache, and on TensorFlow copies it.
    Elsewhere shapes are static, so all slots stay.

    Args:
        past: Bool tensor `(B, K, L, K)`.
        place: Int32 tensor `(B,)`, the first place of each row that is empty.
        caches: Structure of tensors `(B, H, L, K, D)`.
        length: Integer or scalar tensor, how many places are added.

    Returns:
        past: `(B, K, L', K)`.
        place: Int32 tensor `(B,)`, as above.
        caches: Tensors `(B, H, L', K, D)`; slots keep their order, and empty ones hold
            anything that is finite.
    """
    longer = [[0, 0], [0, 0], [0, length], [0, 0]]
    if keras.backend.backend() != "tensorflow":
        caches = tree.map_structure(lambda cache: ops.pad(cache, [*longer, [0, 0]]), caches)
        return ops.pad(past, longer), place, caches
    batch, beam, places, _ = ops.shape(past)
    slots = places * beam
    past = ops.reshape(past, (batch, beam, slots))
    used = ops.any(past, axis=1)
    place = (ops.sum(ops.cast(used, "int32"), axis=1) + beam - 1) // beam
    # Without rows the maximum would be the least of all integers.
    most = ops.max(place, initial=0)
    kept = ops.argsort(ops.cast(ops.logical_not(used), "int32"), axis=1)
    kept = ops.cast(kept, "int32")[:, : most * beam]

    def picked(flat, each, index):
        """Slots `(B, each, P', ...)` of `(B * each * P, ...)` by an index `(B, P')`."""
        first = ops.reshape(ops.arange(batch * each) * slots, (batch, each, 1))
        return ops.take(flat, first + index[:, None], axis=0)

    past = picked(ops.reshape(past, (-1,)), beam, kept)
    past = ops.reshape(past, (batch, beam, most, beam))
    with_room = ops.pad(kept, [[0, 0], [0, length * beam]])

    def moved(cache):
        heads, size = ops.shape(cache)[1], cache.shape[-1]
        rows = picked(ops.reshape(cache, (-1, size)), heads, with_room)
        return ops.reshape(rows, (batch, heads, most + length, beam, size))

    return ops.pad(past, longer), place, tree.map_structure(moved, caches)
