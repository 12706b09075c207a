"""Elman's network (1990), built from `RNN`, a Keras cell and a dense layer, against numpy."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from keras import ops

from keras_seq.layers import RNN

pytestmark = pytest.mark.jax

LENGTHS = (5, 3)


def test_elman_network_output_uses_the_new_state_of_each_step():
    """a_t = tanh(W_ax x_t + W_aa a_t-1 + b_a); y_t = softmax(W_ya a_t + b_y), of a_t, not a_t-1."""
    inputs = keras.Input((None, 3))
    mask = keras.Input((None,), dtype="bool")
    states = RNN(keras.layers.SimpleRNNCell(4), return_sequences=True)(inputs, mask=mask)
    outputs = keras.layers.Dense(6, activation="softmax")(states)
    model = keras.Model([inputs, mask], outputs)
    reference.randomize(model)
    from_input, from_state, bias, to_output, output_bias = model.get_weights()

    x = np.random.default_rng(1).normal(size=(2, 5, 3)).astype("float32")
    real = np.arange(5) < np.array(LENGTHS)[:, None]
    found = ops.convert_to_numpy(model.predict_on_batch([x, real]))
    for row, length in enumerate(LENGTHS):
        state = np.zeros(4)
        for step in range(length):
            state = np.tanh(x[row, step] @ from_input + state @ from_state + bias)
            expected = reference.softmax(state @ to_output + output_bias)
            np.testing.assert_allclose(found[row, step], expected, atol=1e-6)
