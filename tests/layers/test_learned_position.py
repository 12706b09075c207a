"""Learned positions: rows of a table, and errors beyond its end."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import LearnedPosition

pytestmark = pytest.mark.jax


def made(length=6, features=4):
    layer = LearnedPosition(length)
    layer.build((None, None, features))
    layer.set_weights([np.random.default_rng(0).normal(size=(length, features))])
    return layer


def test_learned_position_adds_the_table_row_of_each_position():
    layer = made()
    (table,) = layer.get_weights()
    x = np.random.default_rng(1).normal(size=(3, 5, 4)).astype("float32")
    whole = layer(x)
    np.testing.assert_allclose(whole, x + table[:5], atol=1e-6)
    for position in range(5):
        beam = np.repeat(x[:, position : position + 1], 2, axis=1)
        step = layer.step(beam, ops.array(position, dtype="int32"))
        np.testing.assert_allclose(step, beam + table[position], atol=1e-6)


def test_sequence_as_long_as_the_table_is_accepted():
    assert tuple(made()(np.zeros((1, 6, 4), "float32")).shape) == (1, 6, 4)


def test_sequence_longer_than_the_table_raises_value_error():
    with pytest.raises(ValueError, match=r"vectors for 6 steps, received 7.*larger `length`"):
        made()(np.zeros((1, 7, 4), "float32"))


@pytest.mark.torch
def test_functional_model_takes_sequences_of_unknown_length():
    """On torch, Keras would call the layer on more steps than it has vectors."""
    inputs = keras.Input((None, 4))
    layer = made()
    model = keras.Model(inputs, layer(inputs))
    assert model.output_shape == (None, None, 4)
    x = np.ones((2, 5, 4), "float32")
    expected = x + np.asarray(layer.get_weights()[0])[:5]
    np.testing.assert_allclose(model.predict_on_batch(x), expected, atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX knows each length")
def test_unknown_sequence_length_is_checked_at_run_time():
    import tensorflow as tf

    run = tf.function(made(), input_signature=[tf.TensorSpec((None, None, 4))])
    assert run(np.zeros((1, 6, 4), "float32")).shape == (1, 6, 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="6 is not in"):
        run(np.zeros((1, 7, 4), "float32"))


def test_learned_position_passes_its_mask_on():
    x = keras.layers.Embedding(9, 4, mask_zero=True)(np.array([[4, 5, 0]]))
    pooled = keras.layers.GlobalAveragePooling1D()
    layer = made()
    expected = np.asarray(ops.convert_to_numpy(layer(ops.array(x))))[:, :2].mean(axis=1)
    np.testing.assert_allclose(pooled(layer(x)), expected, atol=1e-6)


@pytest.mark.parametrize("length", [0, 2.0, None])
def test_invalid_table_length_raises_value_error(length):
    with pytest.raises(ValueError, match=rf"`length` must be a positive integer.*{length}"):
        LearnedPosition(length)


def test_inputs_of_unknown_width_or_without_steps_raise_value_error():
    with pytest.raises(ValueError, match=r"`inputs` must be known, .*\(None, 3, None\)"):
        LearnedPosition(5).build((None, 3, None))
    with pytest.raises(ValueError, match=r"`inputs` must have the axes.*\(2, 4\)"):
        LearnedPosition(5)(np.ones((2, 4), "float32"))
