"""The largest k values, against numpy's sort."""

import functools

import keras
import numpy as np
import pytest
from differentiation import quick
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_seq.search.top_k import top_k

pytestmark = [pytest.mark.jax, pytest.mark.torch]


def by_sorting(values, count):
    # A stable sort of the negated values keeps ties in index order.
    index = np.argsort(-values, axis=-1, kind="stable")[..., :count]
    return np.take_along_axis(values, index, axis=-1), index


@functools.cache
def largest(count):
    return quick(lambda values: top_k(values, count))


def found(values, count):
    return [keras.ops.convert_to_numpy(part) for part in largest(count)(values)]


@pytest.mark.parametrize("size", [1, 7, 89, 97, 100, 256, 8000])
@pytest.mark.parametrize("count", [1, 5, 8])
def test_top_k_values_and_indices_equal_numpy_sort(size, count):
    values = np.random.default_rng(size).standard_normal((3, 2, size)).astype("float32")
    count = min(count, size)
    best, index = found(values, count)
    expected, places = by_sorting(values, count)
    np.testing.assert_array_equal(best, expected)
    np.testing.assert_array_equal(index, places)
    assert index.dtype == np.int32


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 4))
def test_top_k_ties_go_to_the_lower_index(seed, levels, count):
    values = np.random.default_rng(seed).integers(0, levels, (2, 2, 400)).astype("float32")
    best, index = found(values, count)
    expected, places = by_sorting(values, count)
    np.testing.assert_array_equal(best, expected)
    np.testing.assert_array_equal(index, places)
