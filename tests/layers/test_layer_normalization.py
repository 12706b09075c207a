"""Layer normalization with a custom gradient, against the gradient of Keras."""

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops

from keras_seq.layers.internal.layer_normalization import LayerNormalization

pytestmark = [pytest.mark.jax, pytest.mark.torch]


def numbers(tensor):
    return ops.convert_to_numpy(tensor)


def pair(**arguments):
    """Returns the layer and that of Keras in float32, with equal weights."""
    layers = [
        LayerNormalization(epsilon=1e-5, **arguments),
        keras.layers.LayerNormalization(epsilon=1e-5),
    ]
    draw = np.random.default_rng(1)
    weights = [draw.normal(size=6), draw.normal(size=6)]
    for layer in layers:
        layer.build((None, None, 6))
        layer.set_weights(weights)
    return layers


def arrays():
    draw = np.random.default_rng(2)
    return [draw.normal(3, 2, size=(2, 3, 6)).astype("float32") for _ in range(2)]


def test_layer_normalization_in_training_equals_keras_with_its_gradients():
    ours, theirs = pair()
    x, weight = arrays()
    np.testing.assert_allclose(numbers(ours(x, training=True)), numbers(theirs(x)), atol=1e-5)

    def loss(layer, **options):
        return lambda x: ops.sum(ops.multiply(layer(x, **options), weight))

    by_x, by_weights = gradients(loss(ours, training=True), [x], ours.weights)
    expected, of_weights = gradients(loss(theirs), [x], theirs.weights)
    for gradient, wanted in zip(by_x + by_weights, expected + of_weights, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=2e-5)


def test_layer_normalization_at_inference_equals_keras():
    ours, theirs = pair()
    (x, _) = arrays()
    np.testing.assert_allclose(numbers(ours(x)), numbers(theirs(x)), atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_layer_normalization_in_half_precision_computes_in_float32(policy):
    ours, theirs = pair(dtype=policy)
    # Far from 0, half precision cannot represent the differences between the numbers.
    x = arrays()[0]
    rounded = ops.cast(x, ours.compute_dtype)
    outputs = ours(rounded, training=True)
    assert keras.backend.standardize_dtype(outputs.dtype) == ours.compute_dtype
    expected = theirs(ops.cast(rounded, "float32"))
    np.testing.assert_allclose(
        numbers(ops.cast(outputs, "float32")), numbers(expected), atol=0.02, rtol=0.01
    )
