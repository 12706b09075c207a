"""The table of ancestors against lists that are copied about."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_seq.layers import ancestry_bias, record_step
from keras_seq.layers.scaled_dot_product import MASKED


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def test_a_step_is_noted_in_its_own_column():
    nothing = np.full((1, 3, 4), -1, "int32")
    first = numpy_of(record_step(nothing, 0))
    assert first[0].tolist() == [[0, -1, -1, -1], [1, -1, -1, -1], [2, -1, -1, -1]]
    # Both new hypotheses come from slot 2: they keep its past and stand in slots 0 and 1.
    moved = first[:, [2, 2, 0]]
    second = numpy_of(record_step(moved, ops.array(1)))
    assert second[0].tolist() == [[2, 0, -1, -1], [2, 1, -1, -1], [0, 2, -1, -1]]


def test_the_bias_is_0_on_the_past_and_hides_everything_else():
    ancestors = np.array([[[2, 0, -1], [2, 1, -1], [0, 2, -1]]], "int32")
    bias = numpy_of(ancestry_bias(ancestors))
    assert bias.shape == (1, 3, 3, 3)
    seen = {tuple(place) for place in np.argwhere(bias[0] == 0).tolist()}
    # Hypothesis, step, slot.
    assert seen == {(0, 0, 2), (0, 1, 0), (1, 0, 2), (1, 1, 1), (2, 0, 0), (2, 1, 2)}
    assert (bias[bias != 0] == MASKED).all()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3).map(tuple), min_size=5, max_size=5)
)
def test_always_points_at_what_the_hypothesis_itself_wrote(parents_of_steps):
    """Slots hold names that are never moved; a hypothesis' own list of names is copied along."""
    beam, steps = 3, len(parents_of_steps)
    slots = [[f"step {step}, slot {slot}" for slot in range(beam)] for step in range(steps)]
    histories = [[] for _ in range(beam)]
    ancestors = np.full((1, beam, steps), -1, "int32")
    for step, parents in enumerate(parents_of_steps):
        ancestors = numpy_of(record_step(ancestors, step))
        histories = [[*history, slots[step][slot]] for slot, history in enumerate(histories)]
        bias = numpy_of(ancestry_bias(ancestors))[0]
        for hypothesis in range(beam):
            seen = [slots[at][slot] for at, slot in np.argwhere(bias[hypothesis] == 0)]
            assert seen == histories[hypothesis]
        ancestors = ancestors[:, list(parents)]
        histories = [histories[parent] for parent in parents]
