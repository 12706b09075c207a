"""A sequence reversed within its real steps, against lists."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import RNN, ReversedSequence

pytestmark = pytest.mark.jax

INPUTS = np.random.default_rng(1).normal(size=(4, 5, 3)).astype("float32")
MASKS = {
    "right": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    "left": [[0, 0, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 1]],
    "within": [[1, 0, 1, 0, 1], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1], [0, 1, 0, 1, 0]],
}


def turned(inputs, mask):
    outputs = np.zeros_like(inputs)
    for row, real in enumerate(mask):
        outputs[row, real] = [*reversed(list(inputs[row, real]))] or np.zeros((0, 3))
    return outputs


@pytest.mark.parametrize("where", MASKS)
def test_real_steps_are_reversed_and_padding_stays_in_place(where):
    mask = np.array(MASKS[where], "bool")
    spoiled = np.where(mask[..., None], INPUTS, np.nan)
    found = ops.convert_to_numpy(ReversedSequence()(spoiled, mask=mask))
    np.testing.assert_array_equal(found, turned(INPUTS, mask))


def test_reversing_twice_restores_the_inputs():
    mask, layer = np.array(MASKS["right"], "bool"), ReversedSequence()
    again = layer(layer(INPUTS, mask=mask), mask=mask)
    np.testing.assert_array_equal(ops.convert_to_numpy(again), INPUTS * mask[..., None])


def test_reversing_without_a_mask_reverses_all_steps():
    np.testing.assert_array_equal(ops.convert_to_numpy(ReversedSequence()(INPUTS)), INPUTS[:, ::-1])


def test_rnn_over_a_reversed_sequence_equals_rnn_going_backwards():
    """The embedding makes the mask, and the layer passes it on."""
    ids = np.array([[4, 5, 6, 0], [7, 8, 0, 0]])
    cell = keras.layers.GRUCell(3)
    inputs = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(9, 4, mask_zero=True)(inputs)
    sides = [RNN(cell)(ReversedSequence()(embedded)), RNN(cell, go_backwards=True)(embedded)]
    both = keras.Model(inputs, sides).predict_on_batch(ids)
    np.testing.assert_allclose(*both, atol=1e-6)


def test_inputs_without_features_raise_value_error():
    with pytest.raises(
        ValueError, match=r"\(batch, steps, features\), received the shape \(2, 3\)"
    ):
        ReversedSequence()(np.zeros((2, 3), "float32"))
