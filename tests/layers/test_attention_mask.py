"""`attention_mask` of attentions with several heads, and of the blocks."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq import layers

pytestmark = pytest.mark.torch

HEADS, FEATURES, VALUE_FEATURES, STEPS, SOURCE_STEPS = 2, 6, 4, 5, 4
PADDING = np.arange(STEPS)[None] < np.array([5, 3, 4])[:, None]
SOURCE_PADDING = np.arange(SOURCE_STEPS)[None] < np.array([2, 4, 3])[:, None]
TWO_SEGMENTS = np.broadcast_to(np.arange(STEPS)[:, None] // 3 == np.arange(STEPS) // 3, (3, 5, 5))


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def random_mask(*shape):
    """Returns a mask in which each query sees the first key, which is real in every row."""
    mask = np.random.default_rng(5).random(shape) < 0.5
    mask[:, :, 0] = True
    return mask


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def keras_attention(layer, features):
    """Returns `keras.layers.MultiHeadAttention` with the weights of a layer of this package."""
    size = FEATURES // HEADS
    theirs = keras.layers.MultiHeadAttention(HEADS, size, flash_attention=False)
    theirs.build((None, None, FEATURES), (None, None, features))
    arrays = [numpy_of(weight) for weight in layer.weights]
    output_kernel, output_bias = arrays[-2:]
    kernels = np.split(np.concatenate(arrays[:-2:2], axis=1), 3, axis=1) if features == 6 else None
    if kernels is None:
        kernels = [arrays[0], *np.split(arrays[2], 2, axis=1)]
    biases = np.split(np.concatenate(arrays[1:-2:2]), 3)
    weights = []
    for kernel, bias in zip(kernels, biases, strict=True):
        weights += [kernel.reshape(-1, HEADS, size), bias.reshape(HEADS, size)]
    theirs.set_weights([*weights, output_kernel.reshape(HEADS, size, FEATURES), output_bias])
    return theirs


def test_self_attention_equals_keras():
    x, mask = normal(3, STEPS, FEATURES), random_mask(3, STEPS, STEPS)
    layer = layers.MultiHeadSelfAttention(HEADS, bias_initializer="random_normal")
    outputs = layer(x, mask=PADDING, attention_mask=mask)
    theirs = keras_attention(layer, FEATURES)
    expected = theirs(x, x, attention_mask=mask & PADDING[:, None])
    # The queries of padding differ, because this layer sets them to 0.
    np.testing.assert_allclose(numpy_of(outputs)[PADDING], numpy_of(expected)[PADDING], atol=1e-5)


def test_cross_attention_equals_keras_in_call_and_step():
    query, value = normal(3, STEPS, FEATURES), normal(3, SOURCE_STEPS, VALUE_FEATURES, seed=1)
    mask = random_mask(3, STEPS, SOURCE_STEPS)
    layer = layers.MultiHeadCrossAttention(HEADS, bias_initializer="random_normal")
    outputs = layer(query, value, value_mask=SOURCE_PADDING, attention_mask=mask)
    theirs = keras_attention(layer, VALUE_FEATURES)
    expected = theirs(query, value, attention_mask=mask & SOURCE_PADDING[:, None])
    np.testing.assert_allclose(numpy_of(outputs), numpy_of(expected), atol=1e-5)
    step = layer.attend(
        ops.convert_to_tensor(query[:, 2:3]),
        **layer.project(ops.convert_to_tensor(value), ops.convert_to_tensor(SOURCE_PADDING)),
        value_mask=ops.convert_to_tensor(SOURCE_PADDING),
        attention_mask=ops.convert_to_tensor(mask[:, 2:3]),
    )
    np.testing.assert_allclose(numpy_of(step), numpy_of(expected)[:, 2:3], atol=1e-5)


SELF_ATTENDING = {
    "attention": lambda: layers.MultiHeadSelfAttention(HEADS),
    "causal_attention": lambda: layers.MultiHeadSelfAttention(HEADS, causal=True),
    "encoder_block": lambda: layers.TransformerEncoderBlock(HEADS, 7),
}


@pytest.mark.parametrize("name", SELF_ATTENDING)
def test_packed_segments_equal_separate_calls(name):
    layer, x = SELF_ATTENDING[name](), normal(3, STEPS, FEATURES)
    outputs = numpy_of(layer(x, attention_mask=TWO_SEGMENTS))
    np.testing.assert_allclose(outputs[:, :3], numpy_of(layer(x[:, :3])), atol=1e-5)
    np.testing.assert_allclose(outputs[:, 3:], numpy_of(layer(x[:, 3:])), atol=1e-5)


def test_packed_segments_equal_separate_calls_of_a_decoder_block():
    block = layers.TransformerDecoderBlock(HEADS, 7)
    x, memory = normal(3, STEPS, FEATURES), normal(3, SOURCE_STEPS, VALUE_FEATURES, seed=1)
    cross = np.arange(STEPS)[:, None] // 3 == np.arange(SOURCE_STEPS) // 2
    outputs = numpy_of(
        block(
            x,
            memory,
            attention_mask=TWO_SEGMENTS,
            cross_attention_mask=np.broadcast_to(cross, (3, STEPS, SOURCE_STEPS)),
        )
    )
    np.testing.assert_allclose(outputs[:, :3], numpy_of(block(x[:, :3], memory[:, :2])), atol=1e-5)
    np.testing.assert_allclose(outputs[:, 3:], numpy_of(block(x[:, 3:], memory[:, 2:])), atol=1e-5)


def test_step_of_a_decoder_block_reads_the_mask_of_its_step():
    block = layers.TransformerDecoderBlock(HEADS, 7)
    x, memory = normal(3, 1, FEATURES), normal(3, SOURCE_STEPS, VALUE_FEATURES, seed=1)
    mask = random_mask(3, 1, SOURCE_STEPS)
    expected = block(x, memory, cross_attention_mask=mask)
    empty = ops.zeros((3, HEADS, 1, 1, FEATURES // HEADS))
    outputs, _ = block.step(
        ops.convert_to_tensor(x),
        ops.convert_to_tensor(0, dtype="int32"),
        ops.zeros((3, 1, 1, 1)),
        {"key": empty, "value": empty},
        block.project(ops.convert_to_tensor(memory)),
        cross_attention_mask=ops.convert_to_tensor(mask),
    )
    np.testing.assert_allclose(numpy_of(outputs), numpy_of(expected), atol=1e-5)


@pytest.mark.parametrize("name", SELF_ATTENDING)
def test_the_mask_of_an_embedding_applies_with_an_attention_mask(name):
    ids = np.where(PADDING, np.arange(1, STEPS + 1), 0)
    source = keras.Input((None,), dtype="int32")
    allowed = keras.Input((None, None), dtype="bool")
    embedded = keras.layers.Embedding(9, FEATURES, mask_zero=True)(source)
    layer = SELF_ATTENDING[name]()
    plain = keras.Model(source, layer(embedded))
    masked = keras.Model([source, allowed], layer(embedded, attention_mask=allowed))
    outputs = masked([ids, np.ones((3, STEPS, STEPS), bool)])
    np.testing.assert_allclose(numpy_of(outputs), numpy_of(plain(ids)), atol=1e-6)


def test_weights_of_a_query_that_sees_nothing_are_zero():
    mask = random_mask(3, STEPS, STEPS)
    mask[:, 1] = False
    layer = layers.MultiHeadSelfAttention(HEADS)
    _, weights = layer(normal(3, STEPS, FEATURES), attention_mask=mask, return_weights=True)
    weights = numpy_of(weights)
    assert (weights[:, :, 1] == 0).all()
    assert (weights[~np.broadcast_to(mask[:, None], weights.shape)] == 0).all()
    np.testing.assert_allclose(weights[:, :, 0].sum(-1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("mask", "received"),
    [
        (np.ones((3, STEPS, STEPS), "float32"), r"received float32 of the shape \(3, 5, 5\)"),
        (np.ones((3, STEPS), bool), r"received bool of the shape \(3, 5\)"),
        (np.ones((3, STEPS, 2), bool), r"received bool of the shape \(3, 5, 2\)"),
    ],
)
def test_an_attention_mask_of_another_kind_raises_value_error(mask, received):
    x = normal(3, STEPS, FEATURES)
    for layer in (layers.MultiHeadSelfAttention(HEADS), layers.TransformerEncoderBlock(HEADS, 7)):
        with pytest.raises(ValueError, match=received):
            layer(x, attention_mask=mask)
    with pytest.raises(ValueError, match=received):
        layers.MultiHeadCrossAttention(HEADS)(x, x, attention_mask=mask)
