"""A layer derives the seeds of its parts from one seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_seq.layers.internal.seeds import split_seed

pytestmark = pytest.mark.jax


@given(st.integers(0, 2**31 - 1), st.integers(0, 40))
def test_split_seeds_are_distinct_and_reproducible(seed, count):
    seeds = split_seed(seed, count)
    assert seeds == split_seed(seed, count)
    assert len(set(seeds)) == count
    assert all(0 <= part < 2**31 for part in seeds)


def test_different_seeds_split_into_disjoint_parts():
    assert not set(split_seed(1, 20)) & set(split_seed(2, 20))


def test_split_seed_of_none_returns_only_none():
    assert split_seed(None, 3) == [None, None, None]
