"""Linear biases, number by number, and the table of slopes in the paper."""

import numpy as np
import pytest
from keras import ops

from keras_seq.layers import LinearBiases

pytestmark = pytest.mark.jax


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def test_linear_bias_slopes_equal_those_of_the_paper():
    # Section 3: for 8 heads 1/2, 1/4 .. 1/256; for 16 heads 2^-0.5, 2^-1, 2^-1.5 ..
    for heads, ratio in ((8, 0.5), (16, 0.5**0.5)):
        scores = numpy_of(LinearBiases()(np.zeros((1, heads, 2, 2), "float32")))
        np.testing.assert_allclose(-scores[0, :, 1, 0], ratio ** np.arange(1, heads + 1), rtol=1e-6)


@pytest.mark.parametrize("heads", [1, 3, 4])
def test_linear_biases_equal_a_loop_over_pairs(heads):
    scores = np.random.default_rng(0).normal(size=(2, heads, 5, 5)).astype("float32")
    expected = scores.copy()
    for head in range(heads):
        for query in range(5):
            for key in range(5):
                slope = 2 ** (-8 * (head + 1) / heads)
                expected[:, head, query, key] -= slope * abs(query - key)
    np.testing.assert_allclose(LinearBiases()(scores), expected, atol=1e-6)


def test_step_bias_equals_its_row_of_the_full_bias():
    layer = LinearBiases()
    whole = numpy_of(layer.bias(np.zeros((1, 4, 6, 3)), 6))
    # Two hypotheses whose cache entries are at different positions.
    for position in range(6):
        slots = np.stack([np.arange(position + 1), np.arange(position + 1)[::-1]])
        row = layer.step_bias(np.zeros((1, 4, 2, 3)), ops.array(position - slots[None]))
        np.testing.assert_allclose(row, whole[:, :, position][:, :, slots], atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 5, 5), (2, None, 5, 5)])
def test_shapes_that_are_not_scores_raise_value_error(shape):
    with pytest.raises(ValueError, match=r"batch, heads, steps, steps.*received.*`position`"):
        LinearBiases().build(shape)
