"""Rotary positions against products of complex numbers; scores depend only on distances."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import RotaryPosition

pytestmark = pytest.mark.jax


def vectors(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(ops.cast(tensor, "float32")))


def turned(x, first=0, max_wavelength=10000.0):
    """Each pair is a complex number, times one of length 1 whose angle grows with the position."""
    pairs = x[..., 0::2] + 1j * x[..., 1::2]
    half = pairs.shape[-1]
    for step in range(x.shape[-2]):
        for i in range(half):
            pairs[..., step, i] *= np.exp(1j * (first + step) / max_wavelength ** (i / half))
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


@pytest.mark.parametrize("shape", [(2, 9, 6), (2, 3, 9, 4)])
@pytest.mark.parametrize("max_wavelength", [10000.0, 50.0])
def test_rotary_position_equals_a_product_of_complex_numbers(shape, max_wavelength):
    x = vectors(*shape)
    got = RotaryPosition(max_wavelength=max_wavelength)(x)
    expected = turned(x.astype("float64"), max_wavelength=max_wavelength)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_rotary_dot_products_depend_only_on_distance():
    layer = RotaryPosition()
    query, key = vectors(1, 1, 8, seed=1), vectors(1, 1, 8, seed=2)

    def product(at, other):
        return float((numpy_of(layer.step(query, at)) * numpy_of(layer.step(key, other))).sum())

    for distance in (-3, 0, 1, 7):
        products = [product(at, at + distance) for at in (3, 4, 50, 200)]
        np.testing.assert_allclose(products, products[0], atol=1e-4)
    assert abs(product(5, 5) - product(5, 6)) > 1e-2


def test_rotary_position_preserves_vector_norms():
    x = vectors(2, 30, 8)
    np.testing.assert_allclose(
        np.linalg.norm(numpy_of(RotaryPosition()(x)), axis=-1),
        np.linalg.norm(x, axis=-1),
        rtol=1e-5,
    )


def test_rotary_steps_equal_the_full_pass():
    layer, x = RotaryPosition(), vectors(2, 7, 4)
    whole = numpy_of(layer(x))
    for position in range(7):
        # Three hypotheses are at the same position.
        beam = np.repeat(x[:, position : position + 1], 3, axis=1)
        step = layer.step(beam, ops.array(position, dtype="int32"))
        np.testing.assert_allclose(
            step, np.repeat(whole[:, position : position + 1], 3, axis=1), atol=1e-6
        )


def test_rotary_angles_keep_float32_precision_under_mixed_bfloat16():
    x = np.ones((1, 600, 4), "float32")
    got = RotaryPosition(dtype="mixed_bfloat16")(x)
    assert keras.backend.standardize_dtype(got.dtype) == "bfloat16"
    # The tolerance is the rounding of numbers up to sqrt(2). An angle of 599 in bfloat16 could be
    # off by 2.
    np.testing.assert_allclose(numpy_of(got), turned(x.astype("float64")), atol=2**-7)


@pytest.mark.parametrize("max_wavelength", [0, -1.0, float("nan")])
def test_invalid_wavelength_raises_value_error(max_wavelength):
    with pytest.raises(ValueError, match=rf"`max_wavelength` must be positive.*{max_wavelength}"):
        RotaryPosition(max_wavelength=max_wavelength)


@pytest.mark.parametrize("features", [5, None])
def test_odd_or_unknown_feature_count_raises_value_error(features):
    with pytest.raises(ValueError, match=rf"even number.*received {features}.*another width"):
        RotaryPosition().build((None, None, features))


def test_inputs_without_a_steps_axis_raise_value_error():
    with pytest.raises(ValueError, match=r"batch, ..., steps, features.*\(2, 4\)"):
        RotaryPosition()(np.ones((2, 4), "float32"))
