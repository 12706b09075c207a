"""Layer normalization with a custom gradient, against the gradient of Keras."""

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops

from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.normalization import make_normalization

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


def test_rms_normalization_equals_numpy_and_passes_masks_on():
    norm = make_normalization("rms", "float32", "norm")
    x = np.random.default_rng(3).normal(size=(2, 3, 4)).astype("float32")
    norm.build(x.shape)
    norm.scale.assign([1.0, 2.0, 3.0, 4.0])
    expected = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6) * [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_allclose(ops.convert_to_numpy(norm(x)), expected, atol=1e-5)
    model = keras.Sequential([keras.layers.Masking(), norm, keras.layers.GlobalAveragePooling1D()])
    x[:, 2] = 0
    np.testing.assert_allclose(
        ops.convert_to_numpy(model(x)), ops.convert_to_numpy(norm(x))[:, :2].mean(axis=1), atol=1e-6
    )


def test_unknown_normalization_raises_value_error():
    with pytest.raises(ValueError, match='`normalization` must be "layer" or "rms", received 5'):
        make_normalization(5, "float32", "norm")
