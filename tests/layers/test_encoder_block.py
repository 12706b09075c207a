"""The encoder block against numpy."""

import keras
import numpy as np
import pytest
import reference_transformer as reference
from differentiation import gradients
from keras import ops

from keras_seq.layers import RelativePosition, RotaryPosition, TransformerEncoderBlock
from keras_seq.layers.internal.residual import Residual

HEADS, FEATURES, STEPS = 2, 6, 5
LENGTHS = (5, 3, 1)
MASK = np.arange(STEPS)[None] < np.array(LENGTHS)[:, None]


def made(name="block", **arguments):
    block = TransformerEncoderBlock(HEADS, 7, name=name, **arguments)
    block.build((None, None, FEATURES))
    reference.randomize(block)
    return block


def inputs():
    return np.random.default_rng(0).normal(size=(3, STEPS, FEATURES)).astype("float32")


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_encoder_block_equals_numpy(norm, causal):
    block, x = made(norm=norm, causal=causal, activation="gelu"), inputs()
    outputs = numpy_of(block(x, mask=MASK))
    arrays = reference.named_arrays(block, "block/")
    for row, length in enumerate(LENGTHS):
        expected = reference.encoder_block(
            x[row, :length].astype("float64"), arrays, HEADS, norm, reference.gelu, causal
        )
        np.testing.assert_allclose(outputs[row, :length], expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_contents_change_neither_outputs_nor_gradients(norm):
    block, x = made(norm=norm), inputs()
    spoiled = np.where(MASK[..., None], x, np.nan).astype("float32")

    def total(x):
        outputs = block(x, mask=MASK)
        return ops.sum(ops.where(MASK[..., None], outputs, 0.0) ** 2)

    by_input, by_weight = gradients(total, [x], block.trainable_weights)
    by_spoiled, by_weight_of_spoiled = gradients(total, [spoiled], block.trainable_weights)
    for left, right in zip(by_spoiled + by_weight_of_spoiled, by_input + by_weight, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)
    np.testing.assert_allclose(
        numpy_of(block(spoiled, mask=MASK))[MASK],
        numpy_of(block(x, mask=MASK))[MASK],
        atol=1e-6,
    )


def test_stacked_encoder_blocks_take_their_mask_from_the_embedding():
    ids = np.array([[4, 5, 6, 0, 0], [4, 5, 6, 7, 8], [8, 0, 0, 0, 0]])
    embedding = keras.layers.Embedding(9, FEATURES, mask_zero=True)
    first, second = made("first"), made("second")
    source = keras.Input((None,), dtype="int32")
    model = keras.Model(source, second(first(embedding(source))))
    padded, short = numpy_of(model(ids)), numpy_of(model(ids[:1, :3]))
    np.testing.assert_allclose(padded[:1, :3], short, atol=1e-5)
    pooled = keras.layers.GlobalAveragePooling1D()(second(first(embedding(ids))))
    np.testing.assert_allclose(pooled[0], short[0].mean(axis=0), atol=1e-5)


def test_each_dropout_rate_acts_in_training_only_and_repeats_with_the_seed():
    x = inputs()
    expected = numpy_of(made()(x))
    for rate in ("dropout", "attention_dropout", "activation_dropout", "layer_dropout"):
        block = made(**{rate: 0.5}, seed=1)
        np.testing.assert_allclose(block(x), expected, atol=1e-6)
        trained = numpy_of(block(x, training=True))
        assert abs(trained - expected).max() > 0.05
        again = made(**{rate: 0.5}, seed=1)(x, training=True)
        np.testing.assert_allclose(trained, again, atol=1e-6)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_layer_dropout_leaves_out_a_part_for_whole_rows(norm):
    """The other rows count 1 / (1 - rate) times, as with dropout."""
    x = np.random.default_rng(3).normal(size=(400, 2, 4)).astype("float32")
    residual = Residual(norm, layer_dropout=0.25, seed=1)
    added = numpy_of(residual.around(lambda x: x * x, x, training=True))
    part = (numpy_of(residual.normalization(x)) if norm == "pre" else x) ** 2
    without, counted = x, x + part / 0.75
    if norm == "post":
        without, counted = (numpy_of(residual.normalization(each)) for each in (without, counted))
    is_left_out = np.isclose(added, without, atol=1e-4).all(axis=(1, 2))
    is_counted = np.isclose(added, counted, atol=1e-4).all(axis=(1, 2))
    assert (is_left_out ^ is_counted).all()
    # Within five standard deviations of a quarter.
    assert abs(is_left_out.mean() - 0.25) < 5 * (0.25 * 0.75 / 400) ** 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": "both"}, '`norm` must be "pre" or "post", received \'both\''),
        ({"dropout": 1}, r"`dropout`.*\[0, 1\)"),
        ({"attention_dropout": -1}, r"`dropout`.*\[0, 1\)"),
        ({"activation_dropout": 2}, r"`dropout`.*\[0, 1\)"),
        ({"layer_dropout": 1}, r"`layer_dropout`.*\[0, 1\)"),
        ({"num_heads": 0}, "`num_heads`"),
        ({"feedforward_units": 0}, "`units`"),
    ],
)
def test_invalid_encoder_block_arguments_raise_value_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransformerEncoderBlock(**{"num_heads": 2, "feedforward_units": 4} | arguments)


@pytest.mark.parametrize("position", [None, lambda: RotaryPosition(), lambda: RelativePosition(1)])
def test_encoder_block_is_order_sensitive_only_with_a_position(position):
    """Without a position, permuted steps give equally permuted outputs."""
    block = TransformerEncoderBlock(
        1, 7, activation="reglu", position=position and position(), name="block"
    )
    block.build((None, None, FEATURES))
    reference.randomize(block)
    x = inputs()
    order = np.array([2, 0, 1, 4, 3])
    difference = abs(numpy_of(block(x[:, order])) - numpy_of(block(x))[:, order]).max()
    assert difference < 1e-5 if position is None else difference > 1e-3
    again = TransformerEncoderBlock.from_config(block.get_config())
    assert again.get_config() == block.get_config()
    again.build((None, None, FEATURES))
    again.set_weights(block.get_weights())
    np.testing.assert_allclose(again(x), block(x), atol=1e-6)
