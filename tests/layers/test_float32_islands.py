"""With half precision, softmax and norms are as accurate as in float32, against float64 numpy.

And nothing is rounded to float32 where the dtype policy is float64.
"""

import keras
import numpy as np
import pytest
import reference_transformer as reference
from conformance.harness import policy_of
from keras import ops

from keras_seq import layers
from keras_seq.layers.internal.residual import Residual
from keras_seq.layers.internal.scaled_dot_product import (
    attention_weights,
    padding_bias,
    query_has_keys,
)
from keras_seq.layers.internal.single_head_attention import masked_softmax

pytestmark = pytest.mark.jax

KEYS, REAL = 4000, 3900
HALF = ["bfloat16", "float16"]
# Half a unit in the last place of each dtype.
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def to_numpy(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float32")).astype("float64")


def half_scores(dtype):
    """Returns logits `(1, 2, KEYS)` that the dtype represents exactly, and a mask that hides the
    last 100."""
    scores = np.random.default_rng(0).normal(0, 3, (1, 2, KEYS))
    return ops.cast(scores.astype("float32"), dtype), np.arange(KEYS)[None] < REAL


def softmax(scores, mask):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True)) * mask[:, None]
    return exponentials / exponentials.sum(-1, keepdims=True)


def check(weights, scores, mask):
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    weights = to_numpy(weights)
    np.testing.assert_allclose(weights, softmax(to_numpy(scores), mask), rtol=1e-5)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    assert not weights[..., REAL:].any()


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_softmax_over_4000_keys_has_float32_accuracy(dtype):
    scores, mask = half_scores(dtype)
    check(masked_softmax(scores, ops.convert_to_tensor(mask)), scores, mask)
    # The tolerance is ten times below the rounding error of the dtype.
    rounded = to_numpy(ops.cast(softmax(to_numpy(scores), mask).astype("float32"), dtype))
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(rounded, softmax(to_numpy(scores), mask), rtol=1e-4)


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_attention_weights_over_4000_keys_have_float32_accuracy(dtype):
    """A query of ones and keys of one number each, so that the products are exact in the dtype."""
    scores, mask = half_scores(dtype)
    query = ops.ones((1, 1, 1, 1), dtype)
    key = ops.cast(ops.reshape(scores[:, :1], (1, 1, KEYS, 1)), dtype)
    weights = attention_weights(query, key, padding_bias(ops.convert_to_tensor(mask)))
    check(weights[:, 0], scores[:, :1], mask)


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_context_over_4000_keys_matches_numpy_to_rounding(dtype):
    """Values that are 1 at every tenth key show the attention weights."""
    scores, mask = half_scores(dtype)
    key = ops.cast(ops.reshape(scores[:, :1], (1, 1, KEYS, 1)), dtype)
    value = np.stack([np.arange(KEYS) % 10 == ten for ten in range(10)], axis=-1)[None, None]
    bias = padding_bias(ops.convert_to_tensor(mask))
    weights = attention_weights(ops.ones((1, 1, 1, 1), dtype), key, bias, query_has_keys(bias))
    context = ops.matmul(ops.cast(weights, dtype), ops.cast(value, dtype))
    assert keras.backend.standardize_dtype(context.dtype) == dtype
    expected = softmax(to_numpy(scores[:, :1]), mask) @ value[0, 0]
    # Weights and context are each rounded once.
    np.testing.assert_allclose(to_numpy(context)[0], expected, rtol=2 * ROUNDING[dtype])


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_norm_of_4000_features_rounds_only_the_result(dtype):
    """Far from 0, sums of squares in the dtype would lose all digits. Only the result is
    rounded."""
    norm = Residual(norm="post", dtype=f"mixed_{dtype}")
    norm.build((1, 3, KEYS))
    inputs = ops.cast(np.random.default_rng(1).normal(50, 5, (1, 3, KEYS)), dtype)
    found = norm.around(ops.zeros_like, inputs)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    exact = to_numpy(inputs)
    centred = exact - exact.mean(-1, keepdims=True)
    expected = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)
    limit = ROUNDING[dtype] * np.abs(expected) + 1e-5
    assert (np.abs(to_numpy(found) - expected) <= limit).all()


@pytest.mark.parametrize("weights", [False, True])
def test_self_attention_keeps_float64_precision(weights):
    x = np.random.default_rng(2).normal(size=(1, 5, 8))
    with policy_of("float64"):
        layer = layers.MultiHeadSelfAttention(2, causal=True, name="attention")
        layer.build(x.shape)
        reference.randomize(layer)
        found = layer(x, return_weights=weights)
        found = [ops.convert_to_numpy(tensor) for tensor in (found if weights else [found])]
        arrays = reference.named_arrays(layer)
    expected = reference.self_attention(x[0], arrays, "attention", heads=2, causal=True)
    for tensor, array in zip(found, expected, strict=False):
        assert tensor.dtype == np.float64
        np.testing.assert_allclose(tensor[0], array, rtol=0, atol=1e-13)


def test_sinusoidal_and_rotary_positions_keep_float64_precision():
    x = np.random.default_rng(3).normal(size=(2, 3, 6))
    near = x + 1e-11 * np.sign(x)
    with policy_of("float64"):
        for layer in (layers.SinusoidalPosition(), layers.RotaryPosition()):
            one, other = (ops.convert_to_numpy(layer(inputs)) for inputs in (x, near))
            assert one.dtype == np.float64
            # Both positions are added to vectors or rotate them, so errors stay as large as the
            # rounding.
            np.testing.assert_allclose(
                np.linalg.norm(other - one), np.linalg.norm(near - x), rtol=1e-4
            )
