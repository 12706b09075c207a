"""The table of the cache entries of each hypothesis, against copied lists."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_seq.layers import beam_cache_mask, update_ancestors
from keras_seq.layers.attention.beam_cache import compact_cache, distances
from keras_seq.layers.internal.scaled_dot_product import NEG_INF

pytestmark = pytest.mark.jax

STATIC = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="elsewhere shapes are static"
)


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def slots_of(past):
    """Returns the cache entries of each hypothesis of the first row as pairs (position, slot)."""
    return [[tuple(pair) for pair in np.argwhere(one).tolist()] for one in numpy_of(past)[0]]


def test_record_step_adds_the_slot_of_each_hypothesis_and_keeps_its_past():
    nothing = np.zeros((1, 3, 4, 3), "bool")
    first = numpy_of(update_ancestors(nothing, 0))
    assert slots_of(first) == [[(0, 0)], [(0, 1)], [(0, 2)]]
    # Both new hypotheses descend from slot 2. They keep its past and get slots 0 and 1.
    second = update_ancestors(first[:, [2, 2, 0]], ops.array([1]))
    assert slots_of(second) == [[(0, 2), (1, 0)], [(0, 2), (1, 1)], [(0, 0), (1, 2)]]


def test_record_step_uses_a_separate_position_for_each_row():
    past = numpy_of(update_ancestors(np.zeros((2, 1, 3, 1), "bool"), ops.array([2, 0])))
    assert past[:, 0, :, 0].tolist() == [[False, False, True], [True, False, False]]


def test_ancestry_bias_is_zero_on_the_past_and_masks_everything_else():
    past = np.random.default_rng(1).random((2, 3, 4, 3)) < 0.5
    bias = numpy_of(beam_cache_mask(past))
    np.testing.assert_array_equal(bias == 0, past)
    assert (bias[~past] == NEG_INF).all()


def test_ancestry_distances_count_the_steps_since_each_slot():
    # The entries of a hypothesis after four steps, some in the slots of other hypotheses.
    past = np.array([[[True, False, True, True, False, True, False]]])
    ago = numpy_of(distances(beam_cache_mask(past), ops.array(3)))
    assert ago[past].tolist() == [3, 2, 1, 0]
    assert ago.min() >= 0
    assert ago.max() <= 4


@STATIC
def test_make_room_discards_unused_slots_and_keeps_every_past():
    """Two rows of two hypotheses and three positions. The cache holds a name for each entry."""
    past = np.zeros((2, 2, 3, 2), "bool")
    past[0, 0, [0, 1, 2], [1, 0, 0]] = True
    past[0, 1, [0, 1, 2], [1, 1, 1]] = True
    past[1, :, [0, 1], [0, 1]] = True
    names = np.arange(1, 13, dtype="float32").reshape(2, 1, 3, 2, 1)
    filled = ops.array([3, 2], dtype="int32")
    moved, place, caches = compact_cache(ops.array(past), filled, {"key": ops.array(names)}, 1)
    # Five entries of the first row and two of the second are alive, which need three positions and
    # one; one is added.
    assert numpy_of(place).tolist() == [3, 1]
    cache, moved = numpy_of(caches["key"])[:, 0, ..., 0], numpy_of(moved)
    assert cache.shape == (2, 4, 2)
    assert moved.shape == (2, 2, 4, 2)
    for row in range(2):
        for hypothesis in range(2):
            before = names[row, 0, ..., 0][past[row, hypothesis]].tolist()
            assert cache[row][moved[row, hypothesis]].tolist() == before
    assert cache[0].reshape(-1)[:5].tolist() == [2, 3, 4, 5, 6]
    assert cache[1].reshape(-1)[:2].tolist() == [7, 10]
    assert np.isfinite(cache).all()


@STATIC
def test_make_room_accepts_zero_rows():
    past, place, cache = compact_cache(
        ops.zeros((0, 2, 3, 2), dtype="bool"),
        ops.zeros((0,), dtype="int32"),
        ops.zeros((0, 1, 3, 2, 4)),
        2,
    )
    assert [tuple(tensor.shape) for tensor in (past, place, cache)] == [
        (0, 2, 2, 2),
        (0,),
        (0, 1, 2, 2, 4),
    ]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3).map(tuple), min_size=5, max_size=5)
)
def test_ancestry_bias_and_distances_match_copied_histories(parents_of_steps):
    """Cache entries hold names and never move, while each hypothesis copies its own list of
    names."""
    beam, steps = 3, len(parents_of_steps)
    slots = [[f"step {step}, slot {slot}" for slot in range(beam)] for step in range(steps)]
    histories = [[] for _ in range(beam)]
    past = np.zeros((1, beam, steps, beam), "bool")
    for step, parents in enumerate(parents_of_steps):
        past = numpy_of(update_ancestors(past, step))
        histories = [[*history, slots[step][slot]] for slot, history in enumerate(histories)]
        bias = numpy_of(beam_cache_mask(past))
        ago = numpy_of(distances(bias.reshape(1, beam, -1), ops.array(step)))[0]
        for hypothesis in range(beam):
            own = bias[0, hypothesis] == 0
            assert [slots[at][slot] for at, slot in np.argwhere(own)] == histories[hypothesis]
            assert ago[hypothesis][own.reshape(-1)].tolist() == list(range(step, -1, -1))
        past = past[:, list(parents)]
        histories = [histories[parent] for parent in parents]
