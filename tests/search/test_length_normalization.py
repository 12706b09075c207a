"""Length penalties against their formulas."""

import numpy as np
import pytest

from keras_seq.search import length_penalty

pytestmark = pytest.mark.jax

LENGTHS = np.array([[1, 2, 7], [10, 55, 300]])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_average_penalty_is_a_power_of_the_length(alpha):
    expected = LENGTHS.astype(float) ** alpha
    np.testing.assert_allclose(length_penalty(LENGTHS, "average", alpha), expected, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_gnmt_penalty_equals_the_formula_of_the_paper(alpha):
    expected = (5.0 + LENGTHS) ** alpha / (5.0 + 1.0) ** alpha
    np.testing.assert_allclose(length_penalty(LENGTHS, "gnmt", alpha), expected, rtol=1e-5)


def test_gnmt_of_one_token_is_1():
    np.testing.assert_allclose(length_penalty(np.array([1]), "gnmt", 0.8), [1.0], rtol=1e-6)


def test_none_penalty_is_1_for_any_alpha():
    np.testing.assert_array_equal(length_penalty(LENGTHS, "none", 0.7), np.ones(LENGTHS.shape))


def test_average_with_alpha_1_is_the_default():
    np.testing.assert_allclose(length_penalty(LENGTHS), LENGTHS, rtol=1e-6)


def test_unknown_length_normalization_raises_value_error():
    with pytest.raises(ValueError, match=r"average, gnmt, none, received 'mean'"):
        length_penalty(LENGTHS, "mean")


def test_negative_alpha_raises_value_error():
    with pytest.raises(ValueError, match=r"`alpha` must be 0 or more, received -0.5"):
        length_penalty(LENGTHS, alpha=-0.5)
