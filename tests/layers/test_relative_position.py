"""Relative positions against loops over pairs of steps."""

import numpy as np
import pytest
from keras import ops

from keras_seq.layers import RelativePosition
from keras_seq.layers.positions.relative_position import by_distance, by_key

pytestmark = pytest.mark.jax

HEADS, KEYS, VALUES = 2, 4, 3


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def made(max_distance, values=True):
    layer = RelativePosition(max_distance, values=values)
    layer.build_heads(HEADS, KEYS, VALUES)
    generator = np.random.default_rng(1)
    layer.set_weights([generator.normal(size=weight.shape) for weight in layer.weights])
    return layer


def random(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def vector(table, query, key):
    """Returns the vector of a pair of steps by equation 4 of the paper."""
    furthest = len(table) // 2
    return table[max(-furthest, min(furthest, key - query)) + furthest]


@pytest.mark.parametrize(("steps", "max_distance"), [(1, 1), (2, 20), (5, 2)])
def test_scores_and_contexts_equal_loops_over_pairs(steps, max_distance):
    layer = made(max_distance)
    query, weights = random(2, HEADS, steps, KEYS), random(2, HEADS, steps, steps)
    keys, values = numpy_of(layer.key_vectors), numpy_of(layer.value_vectors)
    assert keys.shape == (2 * max_distance + 1, KEYS)
    assert values.shape == (2 * max_distance + 1, VALUES)
    scores = np.zeros((2, HEADS, steps, steps))
    contexts = np.zeros((2, HEADS, steps, VALUES))
    for t in range(steps):
        for s in range(steps):
            scores[:, :, t, s] = query[:, :, t] @ vector(keys, t, s)
            contexts[:, :, t] += weights[:, :, t, s, None] * vector(values, t, s)
    np.testing.assert_allclose(layer(query), scores, atol=1e-5)
    np.testing.assert_allclose(layer.context_bias(ops.array(weights)), contexts, atol=1e-5)
    for t in (0, steps - 1):
        # One step of a search: hypotheses with equal queries and different cache entries.
        slots = np.stack([np.arange(t + 1), np.arange(t + 1)[::-1]])
        ago = ops.array(np.repeat((t - slots)[None], 2, axis=0), dtype="int32")
        row = layer.step_bias(ops.array(query[:, :, [t, t]]), ago)
        np.testing.assert_allclose(row, scores[:, :, t][:, :, slots], atol=1e-5)
        seen = weights * (np.arange(steps) <= t)
        context = layer.step_context_bias(ops.array(seen[:, :, t][:, :, slots]), ago)
        past = layer.context_bias(ops.array(seen))[:, :, t]
        np.testing.assert_allclose(context, np.stack([past, past], axis=2), atol=1e-5)


def test_by_key_inverts_by_distance():
    x = random(2, HEADS, 5, 5)
    np.testing.assert_array_equal(by_key(by_distance(ops.array(x), 5), 5), x)


def test_relative_position_without_values_has_only_key_vectors():
    layer = made(2, values=False)
    assert [weight.name for weight in layer.weights] == ["key_vectors"]
    assert layer.context_bias(ops.array(random(1, HEADS, 4, 4))) is None


@pytest.mark.parametrize("max_distance", [0, 1.5, None])
def test_invalid_max_distance_raises_value_error(max_distance):
    with pytest.raises(ValueError, match=rf"`max_distance`.*positive integer.*{max_distance}"):
        RelativePosition(max_distance)


@pytest.mark.parametrize("shape", [(2, 5, 4), (2, 2, 5, None)])
def test_shapes_that_are_not_queries_raise_value_error(shape):
    with pytest.raises(ValueError, match=r"batch, heads, steps, features.*received.*`position`"):
        RelativePosition(2).build(shape)
