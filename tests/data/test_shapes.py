"""The choice of a few shapes, against an exhaustive search."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_seq.data.shapes import choose_shapes, ladder


def random_steps(count: int, longest: int, seed: int) -> list[tuple[int, int]]:
    """Hundreds of random step counts; Hypothesis seldom generates such long lists."""
    steps = np.random.default_rng(seed).integers(2, longest, (count, 2), endpoint=True)
    return [(source, target) for source, target in steps.tolist()]


STEPS = st.lists(
    st.tuples(st.integers(2, 60), st.integers(2, 60)), min_size=1, max_size=60
) | st.builds(random_steps, st.integers(1, 150), st.integers(2, 60), st.integers(0, 2**20))


def test_ladder_lists_steps_that_cover_the_longest_length():
    assert ladder(1) == [8]
    assert ladder(8) == [8]
    assert ladder(9) == [8, 16]
    assert ladder(513) == [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768]


@settings(max_examples=100, deadline=None)
@given(steps=STEPS, max_shapes=st.integers(1, 6))
def test_every_pair_fits_its_shape_and_every_shape_is_tight(steps, max_shapes):
    array = np.array(steps)
    bounds, shape = choose_shapes(array[:, 0], array[:, 1], max_shapes)
    assert len(bounds) <= max_shapes
    assert set(shape.tolist()) == set(range(len(bounds)))
    assert (bounds % 8 == 0).all()
    assert (bounds[shape] >= array).all()
    for number, bound in enumerate(bounds):
        assert (bound - array[shape == number].max(axis=0) < 8).all()


@pytest.mark.parametrize("seed", range(20))
def test_chosen_shapes_cost_at_most_5_percent_more_than_the_optimum(seed):
    """`choose_shapes` removes shapes greedily; the optimal three shapes come from trying all."""
    random = np.random.default_rng(seed)
    # Half of the corpora have sides of similar length, as in translation.
    source = random.integers(2, 61, 100)
    target = random.integers(2, 61, 100) if seed % 2 else source + random.integers(-8, 9, 100)
    array = np.stack([source, target.clip(2, 60)], axis=1)
    bounds, shape = choose_shapes(array[:, 0], array[:, 1], 3)
    rungs = ladder(60)
    cells = np.array([(source, target) for source in rungs for target in rungs])
    fits = (cells[:, None] >= array).all(-1)
    costs = np.where(fits, cells.sum(1)[:, None], 10**6)  # (cells, pairs)
    best = min(
        np.minimum(np.minimum(costs[one], costs[two]), costs).sum(1).min()
        for one, two in combinations(range(len(cells)), 2)
    )
    assert bounds[shape].sum() <= 1.05 * best
