"""Location-sensitive attention against numpy."""

import keras
import numpy as np
import pytest
import reference_attention as reference
import reference_recurrent
from keras import ops

from keras_seq.layers.attention.bahdanau_attention import BahdanauAttention
from keras_seq.layers.attention.location_sensitive_attention import LocationSensitiveAttention

LENGTHS = (5, 3, 1)
MASK = np.arange(5)[None] < np.array(LENGTHS)[:, None]
STEPS = 3


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def arrays():
    generator = np.random.default_rng(0)
    query = generator.normal(size=(3, STEPS, 4)).astype("float32")
    value = generator.normal(size=(3, 5, 6)).astype("float32")
    return query, value


def made(**arguments):
    arguments = {"units": 8, "filters": 2, "kernel_size": 3, **arguments}
    layer = LocationSensitiveAttention(name="attention", **arguments)
    layer.build((None, None, 4), (None, None, 6))
    reference_recurrent.randomize(layer, scale=1.0)
    return layer


@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        ({}, {}),
        ({}, {"cumulative": True}),
        ({"kernel_size": 4}, {"smooth": True}),
        ({"kernel_size": 9}, {}),
    ],
)
def test_location_sensitive_attention_equals_numpy(arguments, form):
    layer, (query, value) = made(**arguments, **form), arrays()
    context, weights = map(numpy_of, layer(query, value, value_mask=MASK))
    named = reference_recurrent.named_arrays(layer)
    for row, length in enumerate(LENGTHS):
        real = value[row, :length].astype("float64")
        attend = reference.location_attend(named, "attention", **form)
        for step in range(STEPS):
            expected = attend(query[row, step], real)
            np.testing.assert_allclose(weights[row, step, :length], expected, atol=1e-6)
            np.testing.assert_allclose(context[row, step], expected @ real, atol=1e-5)
        assert (weights[row, :, length:] == 0).all()


def test_zero_location_filters_reduce_to_bahdanau_attention():
    layer, (query, value) = made(), arrays()
    layer.location_filters.assign(layer.location_filters * 0)
    layer.score_bias.assign(layer.score_bias * 0)
    plain = BahdanauAttention(8)
    plain.build((None, None, 4), (None, None, 6))
    plain.query_projection.kernel.assign(layer.query_projection.kernel)
    plain.value_projection.kernel.assign(layer.value_projection.kernel)
    plain.score_vector.assign(layer.score_vector)
    for left, right in zip(
        layer(query, value, value_mask=MASK), plain(query, value, value_mask=MASK), strict=True
    ):
        np.testing.assert_allclose(numpy_of(left), numpy_of(right), atol=1e-6)


def test_identical_values_get_different_weights_after_the_first_step():
    layer, (query, _) = made(), arrays()
    weights = numpy_of(layer(query, np.ones((3, 5, 6), "float32"))[1])
    np.testing.assert_allclose(weights[:, 0], 1 / 5, atol=1e-6)  # no previous attention
    assert np.ptp(weights[:, 1], axis=-1).min() > 1e-4


def test_nan_at_padded_positions_of_the_state_changes_no_output():
    layer, (query, value) = made(cumulative=True), arrays()
    projected = layer.project(ops.convert_to_tensor(value), MASK)
    state = np.random.default_rng(1).uniform(size=(3, STEPS, 5)).astype("float32")
    spoiled = np.where(MASK[:, None], state, np.nan)
    run = [
        layer.attend(ops.convert_to_tensor(query), **projected, state=given, value_mask=MASK)
        for given in (ops.convert_to_tensor(state), ops.convert_to_tensor(spoiled))
    ]
    for left, right in zip(*run, strict=True):
        np.testing.assert_array_equal(numpy_of(left), numpy_of(right))


def test_hypotheses_attended_together_equal_each_attended_alone():
    layer, (query, value) = made(), arrays()
    projected = layer.project(ops.convert_to_tensor(value), MASK)
    state = np.random.default_rng(1).uniform(size=(3, STEPS, 5)).astype("float32")
    state = ops.convert_to_tensor(state)
    together = layer.attend(ops.convert_to_tensor(query), **projected, state=state, value_mask=MASK)
    for k in range(STEPS):
        alone = layer.attend(
            ops.convert_to_tensor(query[:, k : k + 1]),
            **projected,
            state=state[:, k : k + 1],
            value_mask=MASK,
        )
        for left, right in zip(together, alone, strict=True):
            np.testing.assert_allclose(numpy_of(left)[:, [k]], numpy_of(right), atol=1e-6)


def test_fully_masked_row_has_zero_context_and_weights():
    layer, (query, value) = made(smooth=True), arrays()
    value[1] = np.nan
    mask = MASK & [[True], [False], [True]]
    context, weights = map(numpy_of, layer(query, value, value_mask=mask))
    assert (context[1] == 0).all() and (weights[1] == 0).all()
    np.testing.assert_allclose(weights[[0, 2]].sum(axis=-1), 1, atol=1e-6)


def test_dropout_is_training_only_and_the_next_step_sees_undropped_weights():
    layer, (query, value) = made(dropout=0.5, seed=1), arrays()
    kept = numpy_of(layer(query, value)[1])
    dropped = numpy_of(layer(query, value, training=True)[1])
    assert (dropped == 0).any()
    np.testing.assert_allclose(dropped[dropped > 0], 2 * kept[dropped > 0], rtol=1e-5)


class MaskOf(keras.layers.Layer):
    """Returns the mask that Keras attaches to a tensor."""

    def call(self, inputs, mask=None):
        return ops.cast(mask, "float32")

    def compute_mask(self, inputs, mask=None):
        return None


def test_context_and_weights_carry_the_query_mask():
    embedding = keras.layers.Embedding(10, 6, mask_zero=True)
    ids = np.array([[5, 6, 0], [7, 0, 0]])
    layer = LocationSensitiveAttention(4, 2, 3)
    for output in layer(embedding(ids), embedding(np.array([[3, 4], [5, 0]]))):
        np.testing.assert_array_equal(numpy_of(MaskOf()(output)), ids != 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"units": 0}, "`units` must be a positive integer, received 0"),
        ({"filters": 2.0}, "`filters` must be a positive integer, received 2.0"),
        ({"kernel_size": -1}, "`kernel_size` must be a positive integer, received -1"),
        ({"dropout": 1.0}, r"\[0, 1\), received 1.0"),
    ],
)
def test_invalid_location_attention_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        LocationSensitiveAttention(**{"units": 8, **arguments})
