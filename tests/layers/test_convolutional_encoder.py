"""Gated convolutions against numpy, and as the memory of a decoder."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import (
    AttentionCell,
    AttentionDecoder,
    BahdanauAttention,
    ConvolutionalEncoder,
    SinusoidalPosition,
    TokenEmbedding,
)

LENGTHS = (6, 4, 1)
MASK = np.arange(6)[None] < np.array(LENGTHS)[:, None]
INPUTS = np.random.default_rng(0).normal(size=(3, 6, 5)).astype("float32")


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def made(**arguments):
    layer = ConvolutionalEncoder(4, **{"num_layers": 2, **arguments})
    layer.build((None, None, 5))
    for index, weight in enumerate(layer.weights):
        weight.assign(np.random.default_rng([1, index]).normal(size=weight.shape) * 0.5)
    return layer


def by_numpy(layer, inputs):
    """One sequence without padding, step by step."""
    kernel, bias = map(numpy_of, layer.projection.weights)
    hidden = inputs.astype("float64") @ kernel + bias
    for convolution in layer.convolutions:
        kernel, bias = map(numpy_of, convolution.weights)
        width = len(kernel)
        before = width - 1 if layer.causal else (width - 1) // 2
        padded = np.pad(hidden, [(before, width - 1 - before), (0, 0)])
        new = []
        for step, residual in enumerate(hidden):
            both = np.einsum("wu,wuv->v", padded[step : step + width], kernel) + bias
            outputs, gates = np.split(both, 2)
            new.append((residual + outputs / (1 + np.exp(-gates))) / np.sqrt(2))
        hidden = np.array(new)
    return hidden


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"kernel_size": 5},
        {"kernel_size": 1},
        {"causal": True},
        {"causal": True, "kernel_size": 2},
    ],
    ids=str,
)
def test_convolutional_encoder_equals_numpy_on_real_steps(arguments):
    layer = made(**arguments)
    padded = np.where(MASK[..., None], INPUTS, np.nan).astype("float32")
    got = numpy_of(layer(padded, mask=MASK))
    for row, length in enumerate(LENGTHS):
        expected = by_numpy(layer, INPUTS[row, :length])
        np.testing.assert_allclose(got[row, :length], expected, atol=1e-5)
        assert (got[row, length:] == 0).all()


def test_a_step_sees_the_steps_around_it_and_no_others():
    changed = INPUTS[:1].copy()
    changed[0, 5] += 1
    for arguments, seen in (({}, [3, 4, 5]), ({"causal": True}, [5])):
        layer = made(**arguments)
        differs = np.abs(numpy_of(layer(changed)) - numpy_of(layer(INPUTS[:1]))).max(axis=-1)[0]
        assert np.flatnonzero(differs).tolist() == seen


def test_attention_decoder_reads_the_convolutional_memory_and_its_mask():
    source, target = np.array([[4, 5, 6, 0], [7, 0, 0, 0]]), np.array([[4, 5, 6], [5, 6, 0]])
    words = SinusoidalPosition()(TokenEmbedding(10, 4)(source))
    memory = ConvolutionalEncoder(6, num_layers=2)(words)
    cell = AttentionCell(keras.layers.GRUCell(8), BahdanauAttention(8))
    outputs, _, weights = AttentionDecoder(cell)(
        TokenEmbedding(10, 4)(target), memory, return_weights=True
    )
    assert tuple(outputs.shape)[:2] == (2, 3)
    weights = numpy_of(weights)
    assert (weights[0, :, 3:] == 0).all() and (weights[1, :, 1:] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)


def test_initial_activations_neither_vanish_nor_explode_with_depth():
    """A gate near 0.5 passes a quarter of the variance, and no gate passes more than all of it."""
    keras.utils.set_random_seed(0)
    inputs = np.random.default_rng(1).normal(size=(2, 200, 64)).astype("float32")
    one, many = (
        numpy_of(ConvolutionalEncoder(64, num_layers=layers)(inputs)).std() for layers in (1, 6)
    )
    assert 0.9 < many / one < 2.2


def test_dropout_is_seeded_and_in_training_only():
    layer, again = made(dropout=0.5, seed=1), made(dropout=0.5, seed=1)
    trained = numpy_of(layer(INPUTS, training=True))
    np.testing.assert_array_equal(trained, numpy_of(again(INPUTS, training=True)))
    np.testing.assert_allclose(numpy_of(layer(INPUTS))[0], by_numpy(layer, INPUTS[0]), atol=1e-5)
    assert not np.allclose(trained, numpy_of(layer(INPUTS)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"units": 0}, "`units` must be a positive integer, received 0"),
        ({"num_layers": 0}, "`num_layers` must be a positive integer, received 0"),
        ({"kernel_size": 4}, "must be odd.* received 4"),
        ({"dropout": 1.0}, r"\[0, 1\), received 1.0"),
    ],
)
def test_invalid_convolutional_encoder_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        ConvolutionalEncoder(**{"units": 4, **arguments})


def test_inputs_of_wrong_rank_raise_value_error():
    with pytest.raises(ValueError, match=r"\(batch, steps, features\).* the shape \(3, 6\)"):
        ConvolutionalEncoder(4)(INPUTS[..., 0])
