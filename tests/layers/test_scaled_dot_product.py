"""Attention with explicit weights and with the fused operation of Keras, and their biases."""

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops

from keras_seq.layers import MultiHeadCrossAttention, MultiHeadSelfAttention
from keras_seq.layers.internal import multi_head_attention as module
from keras_seq.layers.internal.scaled_dot_product import (
    attention_weights,
    band_bias,
    fused_context,
    has_fused_attention,
    join_biases,
    padding_bias,
    query_has_keys,
)

pytestmark = pytest.mark.jax

# The last row is all padding, and the third row begins with padding.
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]]).astype(bool)
ROWS, STEPS = MASK.shape


def parts(value_size):
    generator = np.random.default_rng(0)
    sizes = (4, 4, value_size)
    return [generator.normal(size=(ROWS, 2, STEPS, size)).astype("float32") for size in sizes]


def biases(masked, causal, window):
    mask = ops.convert_to_tensor(MASK)
    band = band_bias(STEPS, causal, window)
    bias = join_biases([padding_bias(mask) if masked else None, band])
    return bias, query_has_keys(bias) if masked else None


def by_weights(query, key, value, bias, has_keys):
    return ops.matmul(attention_weights(query, key, bias, has_keys), value)


@pytest.mark.parametrize(
    ("masked", "causal", "window"), [(False, False, None), (True, False, 2), (True, True, None)]
)
def test_attention_implementations_agree_on_outputs_and_gradients(masked, causal, window):
    bias, has_keys = biases(masked, causal, window)
    arrays = parts(value_size=4)
    factors = np.random.default_rng(1).normal(size=arrays[2].shape).astype("float32")

    def total(way):
        return lambda *parts: ops.sum(way(*parts, bias, has_keys) * factors)

    outputs = fused_context(*map(ops.convert_to_tensor, arrays), bias, has_keys)
    expected = by_weights(*map(ops.convert_to_tensor, arrays), bias, has_keys)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    if masked:
        assert not np.asarray(outputs)[-1].any()
    found, _ = gradients(total(fused_context), arrays)
    by_softmax, _ = gradients(total(by_weights), arrays)
    assert all(gradient.any() for gradient in by_softmax)
    for one, other in zip(found, by_softmax, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(("causal", "window"), [(False, 1), (False, 3), (True, 2), (True, None)])
def test_band_bias_shows_exactly_the_pairs_inside_the_window(causal, window):
    shown = np.asarray(band_bias(STEPS, causal, window))[0, 0] == 0
    for query in range(STEPS):
        for key in range(STEPS):
            near = window is None or abs(query - key) < window
            assert shown[query, key] == (near and (key <= query or not causal))


def test_seeing_rows_excludes_queries_that_see_no_key():
    bias = join_biases([padding_bias(ops.convert_to_tensor(MASK)), band_bias(STEPS, True, 2)])
    # In the third row, steps 2 and 3 are real and step 4 attends to step 3. In the second row, step
    # 3 attends to step 2 and step 4 to nothing.
    expected = [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(np.asarray(query_has_keys(bias))[:, 0, :, 0], expected)


def has_one(dtype, sizes=(4, 4)):
    return has_fused_attention(*(ops.ones((1, 1, 2, size), dtype) for size in sizes))


def test_fused_attention_is_unavailable_on_cpu():
    assert not has_one("float32")
    if all(device.startswith("cpu") for device in keras.distribution.list_devices()):
        assert not has_one("bfloat16")


def test_fused_attention_needs_jax_a_gpu_and_half_precision(monkeypatch):
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: ["gpu:0"])
    on_jax = keras.backend.backend() == "jax"
    assert has_one("bfloat16") == has_one("float16") == on_jax
    assert not has_one("float32")
    assert not has_one("bfloat16", (4, 3))
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: ["tpu:0"])
    assert not has_one("bfloat16")


def test_attention_layers_give_equal_outputs_with_fused_attention(monkeypatch):
    """Uses the fused operation, as on a GPU."""
    x = np.random.default_rng(2).normal(size=(ROWS, STEPS, 8)).astype("float32")
    own = MultiHeadSelfAttention(2, causal=True, key_size=3, value_size=3)
    other = MultiHeadCrossAttention(2)
    expected = own(x, mask=MASK), other(x, x, value_mask=MASK)
    monkeypatch.setattr(module, "has_fused_attention", lambda *tensors: True)
    monkeypatch.delattr(module, "attention_weights")
    np.testing.assert_allclose(own(x, mask=MASK), expected[0], atol=1e-5)
    np.testing.assert_allclose(other(x, x, value_mask=MASK), expected[1], atol=1e-5)
