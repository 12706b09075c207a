"""Tracks which KV-cache entries belong to which beam hypothesis."""

from typing import Any

import keras
from keras import ops, tree

from keras_seq import backend
from keras_seq.layers.internal.scaled_dot_product import NEG_INF

# Shape letters: B batch, K beam, L cached steps, each with a slot for each hypothesis.


def update_ancestors(ancestors: Any, write_index: Any) -> Any:
    """Marks slot k of the current step as an ancestor of hypothesis k.

    `ancestors` is bool `(B, K, L, K)`, True for the slots `(L, K)` that hold the ancestors of each
    hypothesis. `write_index` `(B,)` or `()` is the index on the axis L of the current step. Returns
    the new `ancestors`.
    """
    _, beam, length, _ = backend.shape(ancestors)
    index = ops.reshape(ops.cast(write_index, "int32"), (-1, 1))
    current = ops.equal(ops.arange(length), index)  # (B, L)
    own = ops.equal(ops.arange(beam)[:, None], ops.arange(beam))  # (K, K)
    return ops.logical_or(
        ancestors, ops.logical_and(current[:, None, :, None], own[None, :, None, :])
    )


def beam_cache_mask(ancestors: Any) -> Any:
    """Returns a float32 bias `(B, K, L, K)` that hides all but the ancestors of each hypothesis.

    To reorder hypotheses, a search gathers the small tensor `ancestors`. Keys and values, hundreds
    of times its size, never move.
    """
    return ops.where(ancestors, 0.0, NEG_INF)


def distances(bias: Any, position: Any) -> Any:
    """Returns the number of steps since each slot was written.

    A hypothesis sees one slot of each step, in the order of steps. `bias` `(B, K, P)` is from
    `beam_cache_mask`, with P slots. Returns int32 `(B, K, P)`, between 0 and `position + 1`,
    undefined for hidden slots.
    """
    count = ops.cumsum(ops.cast(bias > NEG_INF / 2, "int32"), axis=-1)
    return ops.cast(position, "int32") + 1 - count


def compact_cache(
    ancestors: Any, write_index: Any, caches: Any, length: Any
) -> tuple[Any, Any, Any]:
    """Adds `length` steps to a cache and frees the slots that no live hypothesis descends from.

    Live hypotheses share most of their ancestors, so about one slot per step remains instead of K.
    This saves time because a step reads all of a cache, and on TensorFlow copies it. Other backends
    need static shapes and keep all slots.

    `ancestors` is bool `(B, K, L, K)`, `write_index` `(B,)` the first free index on the axis L of
    each row, and `caches` a structure of tensors `(B, H, L, K, D)`. All three are returned with a
    new L. Slots keep their order, and free slots hold finite numbers.
    """
    padding = [[0, 0], [0, 0], [0, length], [0, 0]]
    if keras.backend.backend() != "tensorflow":
        caches = tree.map_structure(lambda cache: ops.pad(cache, [*padding, [0, 0]]), caches)
        return ops.pad(ancestors, padding), write_index, caches
    batch, beam, steps, _ = backend.shape(ancestors)
    slots = steps * beam
    ancestors = ops.reshape(ancestors, (batch, beam, slots))
    used = ops.any(ancestors, axis=1)  # (B, L * K)
    write_index = (ops.sum(ops.cast(used, "int32"), axis=1) + beam - 1) // beam
    # Without `initial`, the maximum of an empty batch would be the lowest integer.
    longest = ops.max(write_index, initial=0)
    used_first = ops.argsort(ops.cast(ops.logical_not(used), "int32"), axis=1)
    index = ops.cast(used_first, "int32")[:, : longest * beam]

    def gather_slots(flat: Any, repeats: Any, index: Any) -> Any:
        """Gathers `(B, repeats, P', ...)` from `(B * repeats * P, ...)` at `index` `(B, P')`."""
        first = ops.reshape(ops.arange(batch * repeats) * slots, (batch, repeats, 1))
        return ops.take(flat, first + index[:, None], axis=0)

    ancestors = gather_slots(ops.reshape(ancestors, (-1,)), beam, index)
    ancestors = ops.reshape(ancestors, (batch, beam, longest, beam))
    padded_index = ops.pad(index, [[0, 0], [0, length * beam]])

    def compact(cache: Any) -> Any:
        heads, size = backend.shape(cache)[1], cache.shape[-1]
        rows = gather_slots(ops.reshape(cache, (-1, size)), heads, padded_index)
        return ops.reshape(rows, (batch, heads, longest + length, beam, size))

    return ops.pad(ancestors, padding), write_index, tree.map_structure(compact, caches)
