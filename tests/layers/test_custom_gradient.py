"""Custom gradients against central differences of the same formulas in float64 numpy."""

from pathlib import Path

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops
from layers.cells import plain_cells as plain

from keras_seq.layers.cells.normalization import normalizer
from keras_seq.layers.internal import custom_gradient as custom_gradient_module
from keras_seq.layers.internal.custom_gradient import custom_gradient
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.step_loop import LoopMatmul

pytestmark = [pytest.mark.jax, pytest.mark.torch]

EPSILON = 1e-3


def drawn(*shapes):
    generator = np.random.default_rng(0)
    return [generator.normal(size=shape).astype("float32") for shape in shapes]


def central_differences(function, arrays):
    """The derivative of a scalar numpy function by every number of every array."""
    arrays = [array.astype("float64") for array in arrays]
    found = []
    for array in arrays:
        slopes = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            value = array[place]
            array[place] = value + 1e-5
            above = function(*arrays)
            array[place] = value - 1e-5
            slopes[place] = (above - function(*arrays)) / 2e-5
            array[place] = value
        found.append(slopes)
    return found


def normalized(rows, gamma, beta):
    return np.stack([plain.normalize(row, gamma, beta, EPSILON) for row in rows])


def normalized_by_layer(training):
    layer = LayerNormalization(epsilon=EPSILON)
    layer.build((None, 6))

    def call(rows, gamma, beta):
        with keras.StatelessScope([(layer.gamma, gamma), (layer.beta, beta)]):
            return layer(rows, training=training)

    return call


def normalized_in_cell(rows, gamma, beta):
    layer = keras.layers.LayerNormalization(epsilon=EPSILON)
    layer.build((None, 6))
    with keras.StatelessScope([(layer.gamma, gamma), (layer.beta, beta)]):
        return normalizer(layer, [layer.beta])(rows)


PLACES = {
    "step-matrix": (
        lambda inputs, matrix: LoopMatmul(matrix)(inputs),
        lambda inputs, matrix: inputs @ matrix,
        [(3, 4), (4, 5)],
    ),
    "normalization-in-a-cell": (normalized_in_cell, normalized, [(3, 6), (6,), (6,)]),
    "layer-normalization": (normalized_by_layer(True), normalized, [(3, 6), (6,), (6,)]),
}


@pytest.mark.parametrize("place", PLACES)
def test_gradients_equal_central_differences_of_numpy(place):
    function, formula, shapes = PLACES[place]
    arrays = drawn(*shapes)
    expected = formula(*(array.astype("float64") for array in arrays))
    # Each output has a different factor, so that no upstream gradient is 1.
    (factors,) = drawn(expected.shape)
    found, _ = gradients(lambda *parts: ops.sum(ops.multiply(function(*parts), factors)), arrays)
    numeric = central_differences(lambda *parts: np.sum(formula(*parts) * factors), arrays)
    for gradient, slopes in zip(found, numeric, strict=True):
        np.testing.assert_allclose(gradient, slopes, rtol=0, atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradient_function_gets_the_gradient_by_the_output(count):
    """It gets nothing else. (The decorator of Keras also passes the inputs on torch.)"""
    seen = []

    @custom_gradient
    def total(*inputs):
        def gradient(upstream):
            seen.append(tuple(upstream.shape))
            by_inputs = tuple(upstream * (number + 1) for number in range(count))
            return by_inputs if count > 1 else by_inputs[0]

        return sum(inputs), gradient

    arrays = drawn(*[(3,)] * count)
    factors = np.array([5.0, -1.0, 0.5], "float32")
    found, _ = gradients(lambda *parts: ops.sum(ops.multiply(total(*parts), factors)), arrays)
    assert seen == [(3,)]
    for number, gradient in enumerate(found):
        np.testing.assert_allclose(gradient, factors * (number + 1))


def test_no_other_module_uses_the_decorator_of_keras():
    """Each backend calls the gradient functions of Keras' decorator differently."""
    folder = Path(custom_gradient_module.__file__).parents[1]
    users = [
        path.name
        for path in folder.rglob("*.py")
        if "ops.custom_gradient" in path.read_text(encoding="utf-8")
    ]
    assert users == ["custom_gradient.py"]


def test_function_of_several_outputs_is_refused_by_name():
    @custom_gradient
    def both(inputs):
        return (inputs, inputs), lambda one, other: one + other

    with pytest.raises(TypeError, match=r"`both` returned several outputs \(tuple\), expected one"):
        both(ops.ones((3,)))
