"""The state of a Transformer that decodes step by step: caches, and who came from whom."""

import keras
from keras import ops

from keras_seq.layers.attention.beam_cache import beam_cache_mask, compact_cache, update_ancestors

# Shape letters: B batch, H heads, K beam, L places of a cache, each with K slots.


def step_inputs(num_layers, num_heads, size, dtype):
    """The symbolic inputs of a step, but for what it knows of the source.

    Args:
        num_layers: Blocks, each with a cache of keys and one of values.
        num_heads: Integer H.
        size: Integer, the width of a head.
        dtype: Of the caches.

    Returns:
        Dict of `token` `(B, K)`, `position` `()` and `state`: `beam` with `past`
        `(B, K, L, K)`, and `shared` with `place` `(B,)`, the next to be written, and
        `key_i` and `value_i` `(B, H, L, K, size)`.
    """
    caches = {
        f"{part}_{i}": keras.Input(
            (num_heads, None, None, size), dtype=dtype, name=f"cache_{part}_{i}"
        )
        for i in range(num_layers)
        for part in ("key", "value")
    }
    return {
        "token": keras.Input((None,), dtype="int32", name="token"),
        "position": keras.Input(batch_shape=(), dtype="int32", name="position"),
        "state": {
            "beam": {"past": keras.Input((None, None, None), dtype="bool", name="past")},
            "shared": {"place": keras.Input((), dtype="int32", name="place"), **caches},
        },
    }


def recorded_step(inputs):
    """The past with this step noted, and the bias by which attention sees its own past."""
    state = inputs["state"]
    recorded = _Record(name="record")(state["beam"]["past"], state["shared"]["place"])
    return recorded, _Bias(name="bias")(recorded)


def like_inputs(step):
    """What a block's step gives, symbolically: of the shapes of what it takes."""
    given = (step["inputs"], step["cache"])
    return keras.tree.map_structure(lambda x: keras.KerasTensor(x.shape, dtype=x.dtype), given)


def empty_state(decoder_step, batch, beam_size, length, dtype):
    """The state before the first step, as `decoder_step` takes it.

    Args:
        decoder_step: A functional model over `step_inputs`.
        batch: Integer or scalar tensor B.
        beam_size: Integer K.
        length: Integer or scalar tensor L.
        dtype: Of the caches.
    """
    caches = [name for name in decoder_step.input["state"]["shared"] if name != "place"]
    _, heads, _, _, size = decoder_step.input["state"]["shared"][caches[0]].shape
    empty = ops.zeros((batch, heads, length, beam_size, size), dtype=dtype)
    return {
        "beam": {"past": ops.zeros((batch, beam_size, length, beam_size), dtype="bool")},
        "shared": {"place": ops.zeros((batch,), dtype="int32"), **dict.fromkeys(caches, empty)},
    }


def longer_state(state, length):
    """A state with room for `length` more steps; slots that are nobody's past are given up."""
    caches = dict(state["shared"])
    place = caches.pop("place")
    past, place, caches = compact_cache(state["beam"]["past"], place, caches, length)
    return {"beam": {"past": past}, "shared": {"place": place, **caches}}


class _Record(keras.layers.Layer):
    """`update_ancestors` as an operation of the graph."""

    def call(self, past, place):
        return update_ancestors(past, place)


class _Bias(keras.layers.Layer):
    """`beam_cache_mask` as an operation of the graph."""

    def call(self, past):
        return beam_cache_mask(past)
