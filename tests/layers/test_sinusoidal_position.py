"""Sinusoidal positions against the formula, number by number."""

import keras
import numpy as np
import pytest
import reference_transformer as reference
from keras import ops

from keras_seq.layers import SinusoidalPosition

pytestmark = pytest.mark.jax


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(ops.cast(tensor, "float32")))


@pytest.mark.parametrize("features", [1, 2, 7, 16])
def test_sinusoidal_position_equals_the_formula(features):
    encoded = SinusoidalPosition()(np.zeros((2, 50, features), "float32"))
    expected = [reference.sinusoid(position, features) for position in range(50)]
    np.testing.assert_allclose(encoded, np.stack([expected, expected]), atol=2e-5)


def test_sinusoidal_position_equals_rows_computed_by_hand():
    # D = 4: wavelengths 1 and 100. sin 2 = 0.9093, cos 2 = -0.4161, sin 0.02, cos 0.02.
    encoded = numpy_of(SinusoidalPosition()(np.zeros((1, 3, 4), "float32")))
    np.testing.assert_allclose(encoded[0, 2], [0.9093, -0.4161, 0.0200, 0.9998], atol=1e-4)
    np.testing.assert_allclose(encoded[0, 0], [0, 1, 0, 1], atol=1e-7)


def test_sinusoidal_position_uses_the_given_wavelength():
    encoded = SinusoidalPosition(max_wavelength=100.0)(np.zeros((1, 20, 6), "float32"))
    expected = [reference.sinusoid(position, 6, 100.0) for position in range(20)]
    np.testing.assert_allclose(encoded[0], expected, atol=1e-5)


def test_sinusoidal_position_is_added_to_the_inputs():
    x = np.random.default_rng(0).normal(size=(2, 5, 6)).astype("float32")
    layer = SinusoidalPosition()
    np.testing.assert_allclose(layer(x) - layer(0 * x), x, atol=1e-6)


def test_sinusoidal_step_at_position_5000_equals_the_formula():
    # float32 holds a position of 5,000 to 5e-4; the angle is no worse.
    encoded = SinusoidalPosition().step(np.zeros((1, 1, 8), "float32"), 5000)
    np.testing.assert_allclose(encoded[0, 0], reference.sinusoid(5000, 8), atol=2e-3)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_neighboring_positions_stay_distinct_in_half_precision(policy):
    encoded = SinusoidalPosition(dtype=policy)(np.zeros((1, 600, 128)))
    assert keras.backend.standardize_dtype(encoded.dtype) == policy.removeprefix("mixed_")
    encoded = numpy_of(encoded)[0]
    assert (encoded[1:] != encoded[:-1]).any(axis=1).all()
    assert len(np.unique(encoded, axis=0)) == 600
    # To the half precision of a number up to 1.
    expected = np.stack([reference.sinusoid(position, 128) for position in range(600)])
    np.testing.assert_allclose(encoded, expected, atol=2**-8)


def test_sinusoidal_steps_equal_the_full_pass():
    x = np.random.default_rng(0).normal(size=(2, 9, 5)).astype("float32")
    layer = SinusoidalPosition()
    whole = numpy_of(layer(x))
    for position in range(9):
        # Three hypotheses are at the same position.
        beam = np.repeat(x[:, position : position + 1], 3, axis=1)
        step = numpy_of(layer.step(beam, ops.array(position, dtype="int32")))
        np.testing.assert_allclose(
            step, np.repeat(whole[:, position : position + 1], 3, axis=1), atol=1e-6
        )


@pytest.mark.parametrize("max_wavelength", [0, -1.0, float("nan")])
def test_invalid_wavelength_raises_value_error(max_wavelength):
    with pytest.raises(ValueError, match=rf"`max_wavelength` must be positive.*{max_wavelength}"):
        SinusoidalPosition(max_wavelength=max_wavelength)


def test_unknown_feature_count_raises_value_error():
    with pytest.raises(ValueError, match=r"`inputs` must be known, .*\(None, 3, None\)"):
        SinusoidalPosition().build((None, 3, None))
