"""Bahdanau's attention against numpy and against Keras."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from keras import ops

from keras_seq.layers.attention.bahdanau_attention import BahdanauAttention

LENGTHS = (5, 3, 1)
MASK = np.arange(5)[None] < np.array(LENGTHS)[:, None]


def arrays(query_features=4, value_features=6, steps=2):
    generator = np.random.default_rng(0)
    query = generator.normal(size=(3, steps, query_features)).astype("float32")
    value = generator.normal(size=(3, 5, value_features)).astype("float32")
    return query, value


def made(query_features=4, value_features=6, **arguments):
    layer = BahdanauAttention(8, name="attention", **arguments)
    layer.build((None, None, query_features), (None, None, value_features))
    reference.randomize(layer)
    return layer


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def test_bahdanau_attention_equals_numpy():
    layer, (query, value) = made(), arrays()
    context, weights = map(numpy_of, layer(query, value, value_mask=MASK))
    named = reference.named_arrays(layer)
    for row, length in enumerate(LENGTHS):
        real = value[row, :length].astype("float64")
        for step in range(2):
            expected = reference.bahdanau(query[row, step], real, named, "attention")
            np.testing.assert_allclose(weights[row, step, :length], expected, atol=1e-6)
            np.testing.assert_allclose(context[row, step], expected @ real, atol=1e-5)
        assert (weights[row, :, length:] == 0).all()


def test_identity_projections_equal_keras_additive_attention():
    layer, (query, value) = made(8, 8), arrays(8, 8)
    layer.query_projection.kernel.assign(np.eye(8))
    layer.value_projection.kernel.assign(np.eye(8))
    theirs = keras.layers.AdditiveAttention()
    theirs.build([(None, None, 8), (None, None, 8)])
    theirs.scale.assign(layer.score_vector)
    got = layer(query, value, value_mask=MASK)
    expected = theirs([query, value], mask=[None, MASK], return_attention_scores=True)
    for ours, keras_own in zip(got, expected, strict=True):
        np.testing.assert_allclose(numpy_of(ours), numpy_of(keras_own), atol=1e-6)


def test_normalized_score_equals_the_plain_form_with_a_scaled_vector_and_bias():
    layer, (query, value) = made(normalize=True), arrays()
    plain = made()
    vector = numpy_of(layer.score_vector)
    plain.query_projection.kernel.assign(layer.query_projection.kernel)
    plain.value_projection.kernel.assign(layer.value_projection.kernel)
    plain.score_vector.assign(numpy_of(layer.score_scale) * vector / np.linalg.norm(vector))
    # The bias is added to the projected value, so a constant feature of the value replaces it.
    value_and_one = np.concatenate([value, np.ones((3, 5, 1), "float32")], axis=-1)
    biased = made(value_features=7)
    biased.query_projection.kernel.assign(layer.query_projection.kernel)
    biased.score_vector.assign(plain.score_vector)
    biased.value_projection.kernel.assign(
        np.concatenate([numpy_of(layer.value_projection.kernel), numpy_of(layer.score_bias)[None]])
    )
    expected = numpy_of(biased(query, value_and_one, value_mask=MASK)[1])
    np.testing.assert_allclose(
        numpy_of(layer(query, value, value_mask=MASK)[1]), expected, atol=1e-6
    )
    assert not np.allclose(numpy_of(plain(query, value, value_mask=MASK)[1]), expected, atol=1e-4)


def test_fully_masked_row_has_zero_context_and_weights():
    layer, (query, value) = made(), arrays()
    value[1] = np.nan
    context, weights = map(
        numpy_of, layer(query, value, value_mask=MASK & [[True], [False], [True]])
    )
    assert (context[1] == 0).all() and (weights[1] == 0).all()
    np.testing.assert_allclose(weights[[0, 2]].sum(axis=-1), 1, atol=1e-6)


def test_attending_to_a_projected_memory_equals_the_full_call():
    layer, (query, value) = made(), arrays()
    projected = layer.project(value, MASK)
    assert tuple(projected["key"].shape) == (3, 5, 8)
    expected = layer(query, value, value_mask=MASK)
    got = layer.attend(ops.convert_to_tensor(query), **projected, value_mask=MASK)
    for left, right in zip(got, expected, strict=True):
        np.testing.assert_allclose(numpy_of(left), numpy_of(right), atol=1e-6)


def test_dropout_drops_weights_in_training_only_and_keeps_their_mean():
    layer = made(dropout=0.25, seed=1)
    query = np.zeros((40, 10, 4), "float32")
    value = np.ones((40, 25, 6), "float32")
    kept = numpy_of(layer(query, value, training=True)[1])
    # 10,000 uniform weights of 1/25: three standard deviations of the share of weights kept.
    assert abs((kept > 0).mean() - 0.75) < 3 * (0.75 * 0.25 / 10_000) ** 0.5
    np.testing.assert_allclose(kept[kept > 0], 1 / 25 / 0.75, rtol=1e-5)
    np.testing.assert_allclose(numpy_of(layer(query, value)[1]), 1 / 25, rtol=1e-5)
    again = made(dropout=0.25, seed=1)
    np.testing.assert_array_equal(numpy_of(again(query, value, training=True)[1]), kept)


def test_embedding_mask_reaches_attention_automatically():
    ids = np.array([[4, 5, 6, 0, 0]])
    embedded = keras.layers.Embedding(10, 6, mask_zero=True)(ids)
    query = np.ones((1, 2, 4), "float32")
    layer = made()
    _, weights = layer(query, embedded)
    assert (numpy_of(weights)[..., 3:] == 0).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"units": 0}, "positive integer, received 0"),
        ({"units": "8"}, "positive integer, received '8'"),
        ({"units": 8, "dropout": 1.0}, r"\[0, 1\), received 1.0"),
    ],
)
def test_invalid_bahdanau_attention_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        BahdanauAttention(**arguments)


def test_unknown_feature_axis_raises_value_error():
    with pytest.raises(ValueError, match=r"`value` must be known, .* \(None, None, None\)"):
        BahdanauAttention(8).build((None, None, 4), (None, None, None))


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
    attention = BahdanauAttention(4)
    seen = MaskOf()
    for output in attention(query, value):
        np.testing.assert_array_equal(ops.convert_to_numpy(seen(output)), ids != 0)
    plain = ops.ones((2, 3, 6))
    for output in attention(plain, ops.ones((2, 2, 6))):
        assert getattr(output, "_keras_mask", None) is None
