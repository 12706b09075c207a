"""Luong's scores against numpy and against Keras."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from keras import ops

from keras_seq.layers.attention.luong_attention import LuongAttention

pytestmark = pytest.mark.jax

LENGTHS = (5, 3, 1)
MASK = np.arange(5)[None] < np.array(LENGTHS)[:, None]


def arrays(query_features=4, value_features=4):
    generator = np.random.default_rng(0)
    query = generator.normal(size=(3, 2, query_features)).astype("float32")
    value = generator.normal(size=(3, 5, value_features)).astype("float32")
    return query, value


def made(score, query_features=4, value_features=4, **arguments):
    layer = LuongAttention(score, name="attention", **arguments)
    layer.build((None, None, query_features), (None, None, value_features))
    reference.randomize(layer)
    return layer


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@pytest.mark.parametrize(
    ("score", "units", "value_features"),
    [("dot", None, 4), ("scaled", None, 4), ("general", None, 6), ("concat", 8, 6)],
)
def test_luong_attention_equals_numpy(score, units, value_features):
    layer = made(score, value_features=value_features, units=units)
    query, value = arrays(value_features=value_features)
    context, weights = map(numpy_of, layer(query, value, value_mask=MASK))
    named = reference.named_arrays(layer)
    for row, length in enumerate(LENGTHS):
        real = value[row, :length].astype("float64")
        for step in range(2):
            expected = reference.luong(query[row, step], real, named, "attention", score)
            np.testing.assert_allclose(weights[row, step, :length], expected, atol=1e-6)
            np.testing.assert_allclose(context[row, step], expected @ real, atol=1e-5)
        assert (weights[row, :, length:] == 0).all()


def test_dot_equals_keras_attention():
    query, value = arrays()
    got = made("dot")(query, value, value_mask=MASK)
    theirs = keras.layers.Attention()
    expected = theirs([query, value], mask=[None, MASK], return_attention_scores=True)
    for ours, keras_own in zip(got, expected, strict=True):
        np.testing.assert_allclose(numpy_of(ours), numpy_of(keras_own), atol=1e-6)


def test_identity_general_score_equals_dot_and_scaled_score_is_flatter():
    query, value = arrays()
    general = made("general")
    general.projection.kernel.assign(np.eye(4))
    dot = numpy_of(made("dot")(query, value)[1])
    np.testing.assert_allclose(numpy_of(general(query, value)[1]), dot, atol=1e-6)
    scaled = numpy_of(made("scaled")(query, value)[1])
    powers = np.sqrt(dot.astype("float64"))  # softmax(e / 2) is the square root, normalized
    np.testing.assert_allclose(scaled, powers / powers.sum(-1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("score", ["dot", "scaled", "general", "concat"])
def test_attending_to_a_projected_memory_equals_the_full_call(score):
    layer = made(score, units=8 if score == "concat" else None)
    query, value = arrays()
    projected = layer.project(value, MASK)
    context, weights = layer.attend(
        ops.convert_to_tensor(query[:, :1]), **projected, value_mask=MASK
    )
    expected = layer(query, value, value_mask=MASK)
    np.testing.assert_allclose(numpy_of(context), numpy_of(expected[0])[:, :1], atol=1e-6)
    np.testing.assert_allclose(numpy_of(weights), numpy_of(expected[1])[:, :1], atol=1e-6)


def test_dropout_acts_in_training_only():
    layer, (query, value) = made("dot", dropout=0.5, seed=3), arrays()
    kept = numpy_of(layer(query, value, training=True)[1])
    whole = numpy_of(layer(query, value)[1])
    assert (kept == 0).any()
    np.testing.assert_allclose(kept[kept > 0], 2 * whole[kept > 0], rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"score": "cosine"}, '"dot", "scaled", "general" or "concat", received .cosine'),
        ({"score": "concat"}, 'With score="concat" `units` must be a positive integer'),
        ({"score": "dot", "units": 8}, "received units=8 with score='dot': leave it out"),
        ({"dropout": -0.1}, r"\[0, 1\), received -0.1"),
    ],
)
def test_invalid_luong_attention_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        LuongAttention(**arguments)


def test_dot_score_of_different_widths_suggests_the_general_score():
    with pytest.raises(ValueError, match='received 4 and 6: use score="general"'):
        LuongAttention("dot").build((None, None, 4), (None, None, 6))


class MaskOf(keras.layers.Layer):
    """Returns the mask that Keras attaches to a tensor."""

    def call(self, inputs, mask=None):
        return ops.cast(mask, "float32")

    def compute_mask(self, inputs, mask=None):
        return None


def test_context_and_weights_carry_the_query_mask():
    embedding = keras.layers.Embedding(10, 6, mask_zero=True)
    ids = np.array([[5, 6, 0], [7, 0, 0]])
    query, value = embedding(ids), embedding(np.array([[3, 4], [5, 0]]))
    attention = LuongAttention("general")
    seen = MaskOf()
    for output in attention(query, value):
        np.testing.assert_array_equal(ops.convert_to_numpy(seen(output)), ids != 0)
    plain = ops.ones((2, 3, 6))
    for output in attention(plain, ops.ones((2, 2, 6))):
        assert getattr(output, "_keras_mask", None) is None
