"""Dropout: its rate, the scale of kept values, and equal masks for equal seeds."""

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops

from keras_seq.layers.internal.dropout import Dropout

pytestmark = pytest.mark.jax

SIZE = 200_000


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.93])
def test_dropout_drops_its_rate_and_rescales_the_rest(rate):
    outputs = np.asarray(Dropout(rate, seed=3)(ops.ones((SIZE,)), training=True))
    dropped = outputs == 0
    # Five standard deviations.
    allowed = 5 * (rate * (1 - rate) / SIZE) ** 0.5
    assert abs(dropped.mean() - rate) < allowed
    np.testing.assert_allclose(outputs[~dropped], 1 / (1 - rate), rtol=2e-4)


def test_dropout_drops_neighbors_independently():
    """Four neighboring values come from one random number."""
    dropped = np.asarray(Dropout(0.3, seed=5)(ops.ones((SIZE,)), training=True)) == 0
    for distance in (1, 2, 3, 4, 8):
        correlation = np.corrcoef(dropped[:-distance], dropped[distance:])[0, 1]
        assert abs(correlation) < 5 / SIZE**0.5


def test_dropout_masks_change_between_calls_and_repeat_with_the_seed():
    first, second = (Dropout(0.4, seed=7) for _ in range(2))
    x = ops.ones((3, 5, 7))  # an odd number of numbers
    calls = [np.asarray(first(x, training=True)) for _ in range(2)]
    assert (calls[0] != calls[1]).any()
    for call in calls:
        np.testing.assert_array_equal(call, second(x, training=True))
    other = Dropout(0.4, seed=8)(x, training=True)
    assert (calls[0] != np.asarray(other)).any()


def test_dropout_gradient_uses_the_mask_of_the_outputs():
    layer, x = Dropout(0.5, seed=1), np.full((4, 9), 2, np.float32)
    outputs = np.asarray(layer(x, training=True))
    again = Dropout(0.5, seed=1)
    (by_x,), _ = gradients(lambda x: ops.sum(again(x, training=True)), [x])
    np.testing.assert_allclose(by_x, outputs / 2)


def test_nothing_is_dropped_without_training_or_rate():
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(Dropout(0.5)(x), x)
    np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_dropout_keeps_the_compute_dtype(policy):
    layer = Dropout(0.5, dtype=policy)
    outputs = layer(ops.ones((3,), layer.compute_dtype), training=True)
    assert keras.backend.standardize_dtype(outputs.dtype) == layer.compute_dtype


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_dropout_of_rectified_inputs_equals_relu_then_dropout(policy):
    """With the same seed, relu followed by dropout and the fused layer are bit-identical."""
    x = np.random.default_rng(1).normal(size=(5, 40)).astype(np.float32)
    x[0, :3] = 0, -0.0, np.inf
    pull = np.random.default_rng(2).normal(size=x.shape).astype(np.float32)
    functions = (
        lambda layer, x: layer(ops.relu(x), training=True),
        lambda layer, x: layer.relu_dropout(x),
    )
    found = []
    for function in functions:

        def outputs(x, function=function):
            layer = Dropout(0.3, seed=9, dtype=policy)
            return ops.cast(function(layer, ops.cast(x, layer.compute_dtype)), "float32")

        def weighed(x, outputs=outputs):
            return ops.sum((outputs(x) * pull)[:, 3:])

        (by_x,), _ = gradients(weighed, [x])
        found.append((np.asarray(outputs(x)), by_x))
    for one, both in zip(*found, strict=True):
        np.testing.assert_array_equal(one, both)
    assert 0 < (found[0][1] != 0).mean() < 0.5
