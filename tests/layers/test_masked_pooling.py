"""Pooling over real steps against loops of numpy."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import MaskedPooling

pytestmark = pytest.mark.jax

# Rows without padding, with padding, with padding on the left, with gaps, and without a real step.
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], "bool")
INPUTS = np.random.default_rng(2).normal(size=(5, 4, 3)).astype("float32") - 3
POOLED = {
    "mean": lambda steps: steps.mean(axis=0),
    "max": lambda steps: steps.max(axis=0),
    "last": lambda steps: steps[-1],
}


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@pytest.mark.parametrize("kind", POOLED)
def test_masked_pooling_equals_numpy_over_real_steps(kind):
    # All numbers are negative, so a maximum that includes padding would be 0.
    got = numpy_of(MaskedPooling(kind)(INPUTS, mask=MASK))
    expected = [POOLED[kind](row[real]) for row, real in zip(INPUTS[:4], MASK, strict=False)]
    np.testing.assert_allclose(got, [*expected, np.zeros(3)], rtol=1e-6)


@pytest.mark.parametrize("kind", POOLED)
def test_pooling_without_a_mask_uses_all_steps(kind):
    got = numpy_of(MaskedPooling(kind)(INPUTS))
    np.testing.assert_allclose(got, [POOLED[kind](row) for row in INPUTS], rtol=1e-6)


def test_a_mean_of_many_steps_is_exact_in_half_precision():
    # In bfloat16, a sum of ones stops growing at 256.
    layer = MaskedPooling("mean", dtype="mixed_bfloat16")
    got = layer(ops.ones((1, 5000, 1), "bfloat16"))
    assert keras.backend.standardize_dtype(got.dtype) == "bfloat16"
    assert float(got[0, 0]) == 1


def test_invalid_pooling_kind_and_input_rank_raise_value_error():
    with pytest.raises(ValueError, match='`kind` must be "mean", "max" or "last", received'):
        MaskedPooling("sum")
    with pytest.raises(
        ValueError, match=r"\(batch, steps, features\), received the shape \(5, 4\)"
    ):
        MaskedPooling()(INPUTS[:, :, 0])
