"""Initializers, regularizers and biases of every layer that has them."""

import json
import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq import layers

pytestmark = pytest.mark.torch

QUERY, VALUE = (2, 3, 8), (2, 5, 6)
LOGITS, ATTENTION = (2, 3, 7), (2, 3, 5)


def normal(shape, seed=0):
    array = np.random.default_rng(seed).normal(size=shape)
    return ops.convert_to_tensor(array.astype("float32"))


def of_query(layer):
    return layer(normal(QUERY))


def of_pair(layer):
    return layer(normal(QUERY), normal(VALUE, 1))


def hard_monotonic(layer):
    return layer(normal(QUERY), normal(VALUE, 1), ops.ones((2, 3), dtype="int32"))


def pointer(layer):
    attention = ops.softmax(normal(ATTENTION, 2))
    source = ops.ones((2, 5), dtype="int32")
    return layer(normal(QUERY), logits=normal(LOGITS, 1), attention=attention, source=source)


def one_step(cell):
    return cell(normal((2, 8)), cell.get_initial_state(batch_size=2))


def attention_cell(cell):
    return cell(normal((2, 8)), cell.get_initial_state(batch_size=2), normal(VALUE, 1))


LAYERS = {
    "self": (lambda **a: layers.MultiHeadSelfAttention(2, **a), of_query),
    "cross": (lambda **a: layers.MultiHeadCrossAttention(2, **a), of_pair),
    "feed_forward": (lambda **a: layers.FeedForward(5, **a), of_query),
    "gated": (lambda **a: layers.FeedForward(5, activation="swiglu", **a), of_query),
    "encoder_block": (lambda **a: layers.TransformerEncoderBlock(2, 5, **a), of_query),
    "decoder_block": (lambda **a: layers.TransformerDecoderBlock(2, 5, **a), of_pair),
    "bahdanau": (lambda **a: layers.BahdanauAttention(4, normalize=True, **a), of_pair),
    "location": (lambda **a: layers.LocationSensitiveAttention(4, 2, 3, **a), of_pair),
    "bahdanau_monotonic": (
        lambda **a: layers.BahdanauMonotonicAttention(4, normalize=True, **a),
        of_pair,
    ),
    "hard_monotonic": (lambda **a: layers.HardMonotonicAttention(7, 4, **a), hard_monotonic),
    "hard_window": (
        lambda **a: layers.HardMonotonicAttention(7, 4, window=2, **a),
        hard_monotonic,
    ),
    "pointer": (lambda **a: layers.PointerGenerator(7, **a), pointer),
    "gru": (lambda **a: layers.GRUCell(4, **a), one_step),
    "lstm": (lambda **a: layers.LSTMCell(4, unit_forget_bias=False, **a), one_step),
    "peephole": (lambda **a: layers.PeepholeLSTMCell(4, unit_forget_bias=False, **a), one_step),
    "norm_lstm": (lambda **a: layers.LayerNormLSTMCell(4, unit_forget_bias=False, **a), one_step),
    "norm_rnn": (lambda **a: layers.LayerNormSimpleRNNCell(4, **a), one_step),
    "nas": (
        lambda **a: layers.NASCell(
            4,
            4,
            **{"use_bias": True, "projection_initializer": keras.initializers.Constant(0.5), **a},
        ),
        one_step,
    ),
}
# These have no biases.
KERNELS = LAYERS | {
    "general": (lambda **a: layers.LuongAttention("general", **a), of_pair),
    "concat": (lambda **a: layers.LuongAttention("concat", units=4, **a), of_pair),
    "luong_monotonic": (lambda **a: layers.LuongMonotonicAttention(**a), of_pair),
    "attention_cell": (
        lambda **a: layers.AttentionCell(
            keras.layers.GRUCell(4), layers.LuongAttention("dot"), **a
        ),
        lambda cell: cell(normal((2, 8)), cell.get_initial_state(2), normal((2, 5, 4), 1)),
    ),
}
CELLS = ("gru", "lstm", "peephole", "norm_lstm", "norm_rnn", "nas")
every_layer = pytest.mark.parametrize("name", LAYERS)
every_kernel = pytest.mark.parametrize("name", KERNELS)


def made(name, **arguments):
    make, call = KERNELS[name]
    layer = make(**arguments)
    return layer, [ops.convert_to_numpy(part) for part in keras.tree.flatten(call(layer))]


def kind(weight):
    """Returns which arguments set a weight, or None for gains and scalars."""
    if weight.path.endswith("recurrent_kernel"):
        return "recurrent"
    if weight.path.endswith("bias") and not weight.path.endswith("sigmoid_bias"):
        return "bias"
    if re.search(r"(kernel|filters|vector|peephole_weights|projection)$", weight.path):
        return "kernel"
    return None


def own(layer, wanted):
    inner = layer.cell.weights if isinstance(layer, layers.AttentionCell) else []
    others = {id(weight) for weight in inner}
    chosen = [w for w in layer.weights if kind(w) == wanted and id(w) not in others]
    return {weight.path: ops.convert_to_numpy(weight) for weight in chosen}


@every_kernel
def test_kernel_initializer_sets_every_kernel(name):
    layer, _ = made(name, kernel_initializer=keras.initializers.Constant(0.5))
    assert own(layer, "kernel")
    for path, array in own(layer, "kernel").items():
        assert (array == 0.5).all(), path
    for part in ("bias", "recurrent"):
        assert not any((array == 0.5).any() for array in own(layer, part).values())


@every_layer
def test_bias_initializer_sets_every_bias(name):
    layer, _ = made(name, bias_initializer=keras.initializers.Constant(0.25))
    assert own(layer, "bias")
    for path, array in own(layer, "bias").items():
        assert (array == 0.25).all(), path


@pytest.mark.parametrize("name", CELLS)
def test_recurrent_initializer_and_regularizer_concern_the_recurrent_kernel(name):
    arguments = {"recurrent_initializer": "ones", "recurrent_regularizer": "l1"}
    layer, _ = made(name, **arguments)
    (array,) = own(layer, "recurrent").values()
    assert (array == 1).all()
    np.testing.assert_allclose([float(loss) for loss in layer.losses], [0.01 * array.size])


@every_kernel
def test_kernel_regularizer_adds_the_penalty_of_every_kernel(name):
    layer, _ = made(name, kernel_regularizer=keras.regularizers.L2(0.1))
    expected = sum(0.1 * np.sum(array**2) for array in own(layer, "kernel").values())
    np.testing.assert_allclose(sum(map(float, layer.losses)), expected, rtol=1e-5)
    assert expected > 0.01


@every_layer
def test_bias_regularizer_adds_the_penalty_of_every_bias(name):
    layer, _ = made(name, bias_regularizer="l1", bias_initializer="ones")
    expected = sum(0.01 * array.size for array in own(layer, "bias").values())
    np.testing.assert_allclose(sum(map(float, layer.losses)), expected, rtol=1e-5)


@every_layer
def test_a_layer_without_biases_equals_a_layer_whose_biases_are_zero(name):
    layer, outputs = made(name)
    plain, _ = made(name, use_bias=False)
    assert own(layer, "bias")
    assert not own(plain, "bias")
    weights = [w for w in layer.weights if kind(w) != "bias"]
    plain.set_weights([ops.convert_to_numpy(weight) for weight in weights])
    again = [ops.convert_to_numpy(part) for part in keras.tree.flatten(KERNELS[name][1](plain))]
    for got, expected in zip(again, outputs, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)


@every_layer
def test_arguments_survive_the_config(name):
    layer, _ = made(
        name,
        kernel_initializer=keras.initializers.Constant(0.5),
        bias_initializer=keras.initializers.Constant(0.25),
        kernel_regularizer=keras.regularizers.L2(0.1),
        bias_regularizer="l1",
    )
    config = json.loads(json.dumps(layer.get_config()))
    restored = type(layer).from_config(config)
    KERNELS[name][1](restored)
    assert restored.use_bias is True
    assert {w.path for w in restored.weights} == {w.path for w in layer.weights}
    for part in ("kernel", "bias"):
        for path, array in own(restored, part).items():
            np.testing.assert_array_equal(array, own(layer, part)[path])
    np.testing.assert_allclose(
        sum(map(float, restored.losses)), sum(map(float, layer.losses)), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["decoder_block", "bahdanau", "hard_window"])
def test_one_initializer_draws_other_numbers_for_each_kernel(name):
    layer, _ = made(name, kernel_initializer=keras.initializers.RandomNormal())
    arrays = [np.ravel(array)[:4] for array in own(layer, "kernel").values()]
    assert len({tuple(array) for array in arrays}) == len(arrays)


def test_default_query_kernel_of_cross_attention_has_half_of_glorots_variance():
    layer = layers.MultiHeadCrossAttention(2)
    layer.build((None, None, 200), (None, None, 200))
    kernel = ops.convert_to_numpy(layer.query_projection.kernel)
    np.testing.assert_allclose(kernel.var(), 0.5 / 200, rtol=0.05)
    chosen = layers.MultiHeadCrossAttention(
        2, kernel_initializer=keras.initializers.GlorotUniform()
    )
    chosen.build((None, None, 200), (None, None, 200))
    kernel = ops.convert_to_numpy(chosen.query_projection.kernel)
    np.testing.assert_allclose(kernel.var(), 1 / 200, rtol=0.05)


def test_bahdanau_attention_adds_its_bias_inside_the_tanh():
    layer = layers.BahdanauAttention(4, use_bias=True, bias_initializer="ones")
    query, value = normal(QUERY), normal(VALUE, 1)
    _, weights = layer(query, value)
    hidden = (
        (ops.convert_to_numpy(query) @ ops.convert_to_numpy(layer.query_projection.kernel))[
            :, :, None
        ]
        + (ops.convert_to_numpy(value) @ ops.convert_to_numpy(layer.value_projection.kernel))[
            :, None
        ]
        + 1
    )
    scores = np.exp(np.tanh(hidden) @ ops.convert_to_numpy(layer.score_vector))
    expected = scores / scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(ops.convert_to_numpy(weights), expected, atol=1e-6)


def test_regularizers_of_a_block_survive_a_keras_file(tmp_path):
    inputs = keras.Input((None, 8))
    block = layers.TransformerEncoderBlock(2, 5, kernel_regularizer="l2", use_bias=False)
    model = keras.Model(inputs, block(inputs))
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    assert not any(weight.path.endswith("bias") for weight in restored.weights)
    np.testing.assert_allclose(sum(map(float, restored.losses)), sum(map(float, model.losses)))


def test_an_echo_state_cell_has_no_regularization_loss():
    cell = layers.ESNCell(4, kernel_regularizer="l2")
    one_step(cell)
    assert cell.losses == []
