"""Cross-attention against numpy and Keras, and the step form that a search uses."""

import keras
import numpy as np
import pytest
import reference_transformer as reference
from differentiation import gradients
from keras import ops

from keras_seq.layers import LinearBiases, MultiHeadCrossAttention, RotaryPosition

HEADS, FEATURES, VALUE_FEATURES, STEPS, SOURCE_STEPS = 2, 6, 4, 3, 5
SIZE = FEATURES // HEADS
LENGTHS = (5, 3, 1)
MASK = np.arange(SOURCE_STEPS)[None] < np.array(LENGTHS)[:, None]


def queries(seed=0):
    return np.random.default_rng(seed).normal(size=(3, STEPS, FEATURES)).astype("float32")


def values(seed=1):
    shape = (3, SOURCE_STEPS, VALUE_FEATURES)
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def made(**arguments):
    layer = MultiHeadCrossAttention(HEADS, name="cross", **arguments)
    layer.build((None, None, FEATURES), (None, None, VALUE_FEATURES))
    reference.randomize(layer)
    return layer


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def test_cross_attention_equals_numpy():
    layer, query, value = made(), queries(), values()
    outputs, weights = layer(query, value, value_mask=MASK, return_weights=True)
    outputs, weights = numpy_of(outputs), numpy_of(weights)
    arrays = reference.named_arrays(layer)
    for row, length in enumerate(LENGTHS):
        expected, expected_weights = reference.cross_attention(
            query[row].astype("float64"),
            value[row, :length].astype("float64"),
            arrays,
            "cross",
            HEADS,
        )
        np.testing.assert_allclose(outputs[row], expected, atol=1e-5)
        np.testing.assert_allclose(weights[row, :, :, :length], expected_weights, atol=1e-6)
        assert (weights[row, :, :, length:] == 0).all()


def rotated(heads):
    """Rotates `(B, H, T, D)` by complex numbers: pair i at p turns by p / 10000^(2i / D)."""
    steps, size = heads.shape[-2:]
    rates = 10000.0 ** (-np.arange(0, size, 2) / size)
    turns = np.exp(1j * np.arange(steps)[:, None] * rates)
    pairs = (heads[..., ::2] + 1j * heads[..., 1::2]) * turns
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(heads.shape)


def test_rotary_positions_turn_queries_and_keys():
    layer = made(key_size=4, position=RotaryPosition())
    arrays = {
        name.rpartition("/")[2]: array for name, array in reference.named_arrays(layer).items()
    }
    query, value = queries(), values()

    def heads(inputs, name, start, stop):
        kernel = arrays[f"{name}_kernel"][:, start:stop]
        projected = inputs @ kernel + arrays[f"{name}_bias"][start:stop]
        return projected.reshape(*inputs.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

    scores = rotated(heads(query, "query", 0, 8)) @ rotated(
        heads(value, "key_value", 0, 8)
    ).transpose(0, 1, 3, 2)
    expected = np.exp(scores / 2)
    expected /= expected.sum(-1, keepdims=True)
    _, weights = layer(query, value, return_weights=True)
    np.testing.assert_allclose(numpy_of(weights), expected, atol=1e-5)
    memory = layer.project(value)
    for step in range(STEPS):
        one = query[:, step : step + 1]
        _, single = layer.attend(one, **memory, return_weights=True, position=step)
        np.testing.assert_allclose(numpy_of(single)[:, :, 0], expected[:, :, step], atol=1e-5)


def test_other_positions_are_refused():
    with pytest.raises(ValueError, match="must be None or a `RotaryPosition`"):
        MultiHeadCrossAttention(2, position=LinearBiases())


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("key_size", "value_size"), [(None, None), (2, 7)])
def test_cross_attention_equals_keras_with_the_same_weights(masked, key_size, value_size):
    layer = made(key_size=key_size, value_size=value_size)
    query, value = queries(), values()
    key_size, value_size = key_size or SIZE, value_size or SIZE
    theirs = keras.layers.MultiHeadAttention(HEADS, key_size, value_size, flash_attention=False)
    theirs.build((None, None, FEATURES), (None, None, VALUE_FEATURES))
    key_kernel, value_kernel = np.split(
        numpy_of(layer.key_value_projection.kernel), [HEADS * key_size], axis=1
    )
    key_bias, value_bias = np.split(numpy_of(layer.key_value_projection.bias), [HEADS * key_size])
    theirs.set_weights(
        [
            numpy_of(layer.query_projection.kernel).reshape(FEATURES, HEADS, -1),
            numpy_of(layer.query_projection.bias).reshape(HEADS, -1),
            key_kernel.reshape(VALUE_FEATURES, HEADS, -1),
            key_bias.reshape(HEADS, -1),
            value_kernel.reshape(VALUE_FEATURES, HEADS, -1),
            value_bias.reshape(HEADS, -1),
            numpy_of(layer.output_projection.kernel).reshape(HEADS, -1, FEATURES),
            numpy_of(layer.output_projection.bias),
        ]
    )
    mask = MASK if masked else None
    got = layer(query, value, value_mask=mask, return_weights=True)
    expected = theirs(
        query,
        value,
        attention_mask=None if mask is None else mask[:, None, :],
        return_attention_scores=True,
    )
    np.testing.assert_allclose(got[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(got[1], expected[1], atol=1e-6)
    # Without the weights, the layer computes the same output differently.
    np.testing.assert_allclose(layer(query, value, value_mask=mask), expected[0], atol=1e-5)


def test_single_value_step_gets_all_the_attention_weight():
    layer, query, value = made(), queries(), values()[:, :1]
    outputs, weights = layer(query, value, return_weights=True)
    assert (numpy_of(weights) == 1).all()
    # So the query does not matter.
    np.testing.assert_allclose(outputs, layer(0 * query, value), atol=1e-6)


def test_project_then_attend_equals_the_full_call():
    layer, query, value = made(), queries(), values()
    memory = layer.project(value, MASK)
    # Nothing in the memory has an axis of hypotheses.
    assert tuple(memory["key"].shape) == (3, HEADS, SOURCE_STEPS, SIZE)
    assert tuple(memory["value"].shape) == (3, HEADS, SOURCE_STEPS, SIZE)
    outputs, weights = layer.attend(query, **memory, value_mask=MASK, return_weights=True)
    expected, expected_weights = layer(query, value, value_mask=MASK, return_weights=True)
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)
    # Queries are independent, so the axis of steps can hold hypotheses.
    order = np.array([2, 0, 1])
    shuffled = layer.attend(query[:, order], **memory, value_mask=MASK)
    np.testing.assert_allclose(shuffled, numpy_of(expected)[:, order], atol=1e-6)


def test_padding_contents_change_neither_outputs_nor_gradients():
    layer, query, value = made(), queries(), values()
    spoiled = np.where(MASK[..., None], value, np.nan).astype("float32")

    def total(query, value):
        return ops.sum(layer(query, value, value_mask=MASK) ** 2)

    np.testing.assert_allclose(
        layer(query, spoiled, value_mask=MASK), layer(query, value, value_mask=MASK), atol=1e-6
    )
    by_input, by_weight = gradients(total, [query, value], layer.trainable_weights)
    by_spoiled, by_weight_of_spoiled = gradients(total, [query, spoiled], layer.trainable_weights)
    assert any(gradient.any() for gradient in by_weight)
    for left, right in zip(by_spoiled + by_weight_of_spoiled, by_input + by_weight, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)
    assert (by_spoiled[1][~MASK] == 0).all()


def test_neither_batch_mates_nor_more_padding_change_a_row():
    layer, query, value = made(), queries(), values()
    together = numpy_of(layer(query, value, value_mask=MASK))
    alone = layer(query[1:2], value[1:2, :3])
    np.testing.assert_allclose(together[1:2], alone, atol=1e-6)


def test_fully_masked_value_gets_zero_weights_and_outputs_the_bias():
    mask = MASK.copy()
    mask[1] = False
    layer = made()
    outputs, weights = layer(
        queries(),
        np.where(mask[..., None], values(), np.nan).astype("float32"),
        value_mask=mask,
        return_weights=True,
    )
    assert (numpy_of(weights)[1] == 0).all()
    # A context of 0, then the output projection.
    np.testing.assert_array_equal(
        outputs[1], np.broadcast_to(layer.output_projection.bias, (STEPS, FEATURES))
    )


def test_cross_attention_uses_the_value_mask_and_passes_on_the_query_mask():
    embedding = keras.layers.Embedding(9, FEATURES, mask_zero=True)
    layer = MultiHeadCrossAttention(HEADS)
    target = np.array([[4, 5, 0], [6, 0, 0], [4, 4, 4]])
    source = np.array([[4, 5, 6, 0, 0], [7, 8, 4, 5, 6], [8, 0, 0, 0, 0]])
    query, value = numpy_of(embedding(target)), numpy_of(embedding(source))
    expected = numpy_of(layer(query, value, value_mask=source != 0))
    got = layer(embedding(target), embedding(source))
    np.testing.assert_allclose(got, expected, atol=1e-6)
    # Global pooling averages over the steps of the mask that reaches it.
    pooled = keras.layers.GlobalAveragePooling1D()(got)
    means = [expected[row, : (target[row] != 0).sum()].mean(axis=0) for row in range(3)]
    np.testing.assert_allclose(pooled, means, atol=1e-6)


def test_dropout_acts_in_training_only_and_repeats_with_the_seed():
    layer, query, value = made(dropout=0.5, seed=1), queries(), values()
    np.testing.assert_array_equal(layer(query, value), made()(query, value))
    assert abs(numpy_of(layer(query, value, training=True) - layer(query, value))).max() > 0.1
    np.testing.assert_array_equal(
        made(dropout=0.5, seed=1)(query, value, training=True),
        made(dropout=0.5, seed=1)(query, value, training=True),
    )


@pytest.mark.parametrize("num_heads", [0, 1.5])
def test_invalid_number_of_heads_raises_value_error(num_heads):
    with pytest.raises(ValueError, match=rf"`num_heads`.*positive integer.*{num_heads}"):
        MultiHeadCrossAttention(num_heads)


def test_invalid_dropout_rate_raises_value_error():
    with pytest.raises(ValueError, match=r"`dropout`.*\[0, 1\).*1.5"):
        MultiHeadCrossAttention(2, dropout=1.5)


def test_features_not_divisible_by_the_heads_raise_value_error():
    with pytest.raises(ValueError, match=r"`num_heads` \(4\) must divide.*\(3, 3, 6\)"):
        MultiHeadCrossAttention(4)(queries(), values())


def test_value_of_unknown_width_raises_value_error():
    with pytest.raises(ValueError, match=r"feature axis of `value` must be known.*None"):
        MultiHeadCrossAttention(2).build((None, None, 6), (None, None, None))


@pytest.mark.parametrize("argument", ["key_size", "value_size"])
def test_invalid_key_or_value_size_raises_value_error(argument):
    with pytest.raises(ValueError, match=rf"`{argument}` must be None or a positive integer.*-1"):
        MultiHeadCrossAttention(2, **{argument: -1})


@pytest.mark.parametrize(
    ("query", "value", "mask", "words"),
    [
        (queries()[:, 0], values(), None, "`query` must have the axes.*expand_dims"),
        (queries(), values()[..., :3], None, "`value` must have 4 features.*received 3"),
        (queries(), values()[:2], None, "equally many rows"),
        (queries(), values(), MASK.astype("int32"), "`value_mask` must be bool"),
        (queries(), values(), MASK[:, :4], r"`value_mask` must have.*received \(3, 4\)"),
    ],
)
def test_call_arguments_of_wrong_shape_or_dtype_raise_value_error(query, value, mask, words):
    with pytest.raises(ValueError, match=words):
        made()(query, value, value_mask=mask)
