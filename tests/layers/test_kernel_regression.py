"""Attention with identity projections is the regression of Nadaraya and Watson."""

import numpy as np
import pytest
from keras import ops

from keras_seq import layers

pytestmark = pytest.mark.jax

KEYS, SIZE, VALUES = 7, 4, 3


def closed_form(queries, keys, values):
    """sum of K(q, k) v / sum of K(q, k), K(q, k) = exp(q . k / sqrt d), one number at a time."""
    found = np.zeros((len(queries), values.shape[1]))
    for place, query in enumerate(queries):
        similar = [np.exp(query @ key / np.sqrt(len(key))) for key in keys]
        found[place] = sum(k * v for k, v in zip(similar, values, strict=True)) / sum(similar)
    return found


def of_several_heads(queries, keys, values, mask=None):
    """Returns values `(T, VALUES)` of a one-head layer whose projections are identities."""
    layer = layers.MultiHeadCrossAttention(1, key_size=SIZE, value_size=VALUES)
    layer.build((1, None, SIZE), (1, None, SIZE + VALUES))
    for weight in layer.weights:
        weight.assign(np.zeros(weight.shape) if len(weight.shape) == 1 else np.eye(*weight.shape))
    steps = np.concatenate([keys, values], axis=1)[None]
    given = layer(queries[None], steps, value_mask=None if mask is None else mask[None])
    return ops.convert_to_numpy(given)[0, :, :VALUES]


def of_one_head(queries, keys, values, mask=None):
    layer = layers.LuongAttention("scaled")
    _, weights = layer(queries[None], keys[None], value_mask=None if mask is None else mask[None])
    return ops.convert_to_numpy(weights)[0] @ values


@pytest.fixture
def points():
    generator = np.random.default_rng(5)
    shapes = (5, SIZE), (KEYS, SIZE), (KEYS, VALUES)
    return [generator.normal(size=shape).astype("float32") for shape in shapes]


@pytest.mark.parametrize("attention", [of_several_heads, of_one_head])
def test_attention_equals_nadaraya_watson_regression(attention, points):
    np.testing.assert_allclose(attention(*points), closed_form(*points), atol=2e-6)


@pytest.mark.parametrize("attention", [of_several_heads, of_one_head])
def test_masked_points_are_excluded_from_the_regression(attention, points):
    queries, keys, values = points
    mask = np.arange(KEYS) != 2
    expected = closed_form(queries, keys[mask], values[mask])
    np.testing.assert_allclose(attention(*points, mask=mask), expected, atol=2e-6)


@pytest.mark.parametrize("attention", [of_several_heads, of_one_head])
def test_a_wide_kernel_gives_the_mean_and_a_narrow_one_the_nearest(attention, points):
    queries, keys, values = points
    # On a sphere the nearest has the largest product.
    queries, keys = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    wide = attention(1e-3 * queries, 1e-3 * keys, values)
    np.testing.assert_allclose(wide, np.broadcast_to(values.mean(axis=0), wide.shape), atol=1e-5)
    narrow = attention(100 * queries, 100 * keys, values)
    distances = np.linalg.norm(queries[:, None] - keys[None], axis=-1)
    np.testing.assert_allclose(narrow, values[distances.argmin(axis=1)], atol=1e-4)
