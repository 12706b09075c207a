"""Dropout and zoneout: with known masks against numpy, their statistics, and inference."""

from functools import partial

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from keras import ops
from layers.cells import plain_cells as plain

from keras_seq.layers import RNN, DropoutCell, GRUCell, LSTMCell, ZoneoutCell, stacked

pytestmark = pytest.mark.jax

BATCH, STEPS, FEATURES, UNITS = 2, 4, 3, 5
INPUTS = np.random.default_rng(0).normal(size=(BATCH, STEPS, FEATURES)).astype("float32")
SEED = 7


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def made(cell, inner=None):
    """Returns an RNN layer with random weights, and the numpy weights of its inner cell."""
    layer = RNN(cell, return_sequences=True)
    layer.build((None, None, FEATURES))
    reference.randomize(layer)
    return layer, plain.weights_of(inner or cell)


def test_lstm_dropout_uses_one_input_and_one_state_mask_for_all_steps():
    layer, weights = made(LSTMCell(UNITS, dropout=0.5, recurrent_dropout=0.4, seed=SEED))
    got = numpy_of(layer(INPUTS, training=True))
    generator = keras.random.SeedGenerator(SEED)
    inputs_mask, state_mask = (
        numpy_of(keras.random.dropout(ops.ones((BATCH, size)), rate, seed=generator))
        for size, rate in ((FEATURES, 0.5), (UNITS, 0.4))
    )
    assert (inputs_mask == 0).any() and (state_mask == 0).any()
    for row in range(BATCH):

        def step(x, states, row=row):
            return plain.lstm(x, [states[0] * state_mask[row], states[1]], weights)

        expected, _ = plain.unroll(step, INPUTS[row] * inputs_mask[row], [UNITS] * 2)
        np.testing.assert_allclose(got[row], expected, atol=1e-5)


def test_gru_recurrent_dropout_leaves_the_carried_over_state_unchanged():
    # With z = 1, a GRU keeps its state, whatever its inputs are.
    layer, _ = made(GRUCell(UNITS, recurrent_dropout=0.9, seed=SEED))
    cell = layer.cell
    bias = np.zeros((2, 3 * UNITS))
    bias[0, :UNITS] = 100.0
    cell.set_weights([numpy_of(cell.kernel), numpy_of(cell.recurrent_kernel), bias])
    state = np.random.default_rng(1).normal(size=(BATCH, UNITS)).astype("float32")
    got = numpy_of(layer(INPUTS, initial_state=[ops.array(state)], training=True))
    np.testing.assert_allclose(got, np.repeat(state[:, None], STEPS, axis=1), atol=1e-6)


@pytest.mark.parametrize("training", [False, None])
def test_nothing_is_dropped_at_inference(training):
    cell = LSTMCell(UNITS, dropout=0.5, recurrent_dropout=0.5)
    layer, weights = made(DropoutCell(cell, input=0.5, output=0.5, state=0.5), cell)
    got = numpy_of(layer(INPUTS, training=training))
    for row in range(BATCH):
        step = partial(plain.lstm, weights=weights)
        expected, _ = plain.unroll(step, INPUTS[row], [UNITS] * 2)
        np.testing.assert_allclose(got[row], expected, atol=1e-5)


class Echo(keras.layers.Layer):
    """A cell whose output is [x; h] and whose new state is x, so that tests see its inputs."""

    state_size = output_size = None

    def __init__(self, width):
        super().__init__()
        self.state_size, self.output_size = width, 2 * width

    def get_initial_state(self, batch_size=None):
        return [ops.ones((batch_size, self.state_size))]

    def call(self, inputs, states):
        return ops.concatenate([inputs, states[0]], axis=-1), [inputs]


@pytest.mark.parametrize("per_step", [False, True])
def test_a_dropout_cell_drops_inputs_outputs_and_states_by_their_rates(per_step):
    width, batch, steps = 40, 30, 10
    ones = ops.ones((batch, steps, width))
    rates = {"input": 0.1, "output": 0.2, "state": 0.4}
    for name, rate in rates.items():
        cell = DropoutCell(Echo(width), **{name: rate}, per_step=per_step, seed=SEED)
        layer = RNN(cell, return_sequences=True)
        given, state = np.split(numpy_of(layer(ones, training=True)), 2, axis=-1)
        # The input of a step is the state of the next step.
        seen = {"input": given, "output": np.concatenate([given, state], -1), "state": state}[name]
        kept = seen > 0
        count = kept.size if per_step else kept[:, 0].size
        assert abs(kept.mean() - (1 - rate)) < 3 * (rate * (1 - rate) / count) ** 0.5
        np.testing.assert_allclose(seen[kept], 1 / (1 - rate), rtol=1e-5)
        assert (kept == kept[:, :1]).all() != per_step
        if name == "state":
            np.testing.assert_array_equal(given, 1)
        again = RNN(DropoutCell(Echo(width), **{name: rate}, per_step=per_step, seed=SEED))
        np.testing.assert_array_equal(
            numpy_of(again(ones, training=True)), np.concatenate([given, state], -1)[:, -1]
        )


def test_zoneout_keeps_old_states_where_its_noise_is_below_the_rate():
    inner = LSTMCell(UNITS)
    layer, weights = made(ZoneoutCell(inner, zoneout=[0.3, 0.6], seed=SEED), inner)
    got = numpy_of(layer(INPUTS, training=True))
    generator = keras.random.SeedGenerator(SEED)
    shape = (BATCH, STEPS, UNITS)
    stays = [numpy_of(keras.random.uniform(shape, seed=generator)) < rate for rate in (0.3, 0.6)]
    for row in range(BATCH):
        states = [np.zeros(UNITS)] * 2
        for step in range(STEPS):
            _, new = plain.lstm(INPUTS[row, step], states, weights)
            states = [
                np.where(stay[row, step], old, after)
                for stay, old, after in zip(stays, states, new, strict=True)
            ]
            np.testing.assert_allclose(got[row, step], states[0], atol=1e-5)


def test_zoneout_follows_its_rate_and_uses_the_expectation_at_inference():
    width, batch, steps = 40, 30, 10
    inner = GRUCell(width)
    layer = RNN(ZoneoutCell(inner, zoneout=0.3), return_sequences=True)
    layer.build((None, None, 1))
    # z = 0 and a candidate of tanh(x): every step replaces the whole state.
    weights = [np.zeros((1, 3 * width)), np.zeros((width, 3 * width)), np.zeros((2, 3 * width))]
    weights[0][:, 2 * width :] = 1.0
    weights[2][0, :width] = -100.0
    inner.set_weights(weights)
    inputs = np.broadcast_to(np.arange(1, steps + 1)[:, None] / 10, (batch, steps, 1))
    got = numpy_of(layer(ops.array(inputs, "float32"), training=True))
    before = np.concatenate([np.zeros((batch, 1, width)), got[:, :-1]], axis=1)
    stays = got == before
    assert abs(stays.mean() - 0.3) < 3 * (0.3 * 0.7 / stays.size) ** 0.5
    np.testing.assert_allclose(got[~stays], np.tanh(inputs.repeat(width, -1))[~stays], atol=1e-6)
    expected, state = [], 0.0
    for x in np.tanh(inputs[0]):
        state = 0.3 * state + 0.7 * x
        expected.append(state)
    at_inference = numpy_of(layer(ops.array(inputs[:1], "float32")))
    np.testing.assert_allclose(at_inference[0, :, :1], expected, atol=1e-6)


def test_stacked_noisy_cells_vary_in_training_and_not_at_inference():
    cells = [LSTMCell(UNITS, dropout=0.5), DropoutCell(LSTMCell(UNITS), input=0.5, per_step=True)]
    layer = RNN(stacked([*cells, ZoneoutCell(GRUCell(UNITS))], residual=True))
    one, other = (numpy_of(layer(INPUTS, training=True)) for _ in range(2))
    assert np.isfinite(one).all() and not np.array_equal(one, other)
    np.testing.assert_array_equal(*(numpy_of(layer(INPUTS)) for _ in range(2)))


def test_compiled_training_samples_new_noise_at_every_step():
    inputs = keras.Input((None, FEATURES))
    cell = ZoneoutCell(LSTMCell(UNITS, dropout=0.2, recurrent_dropout=0.2), zoneout=0.2)
    model = keras.Model(inputs, keras.layers.Dense(1)(RNN(cell)(inputs)))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    losses = [model.train_on_batch(INPUTS, np.ones((BATCH, 1))) for _ in range(3)]
    assert len(set(map(float, losses))) == 3


def test_cells_sampling_inside_the_loop_raise_in_training_only():
    for cell in (
        keras.layers.LSTMCell(UNITS, dropout=0.5),
        keras.layers.StackedRNNCells([LSTMCell(2), keras.layers.SimpleRNNCell(UNITS, dropout=0.5)]),
        LSTMCell(UNITS, recurrent_dropout=0.5, dtype="mixed_bfloat16"),
    ):
        layer = RNN(cell)
        layer(INPUTS)
        with pytest.raises(ValueError, match="use a cell of keras_seq with the dtype policy"):
            layer(INPUTS, training=True)


@pytest.mark.parametrize(
    "cell",
    [
        lambda: LSTMCell(UNITS, dropout=0.5),
        lambda: GRUCell(UNITS, recurrent_dropout=0.5),
        lambda: DropoutCell(LSTMCell(UNITS), output=0.5),
        lambda: ZoneoutCell(LSTMCell(UNITS)),
    ],
)
def test_noisy_cells_in_keras_rnn_raise_in_training_only(cell):
    layer = keras.layers.RNN(cell())
    layer(INPUTS)
    with pytest.raises(ValueError, match="drawn before the loop, by `keras_seq.layers.RNN`"):
        layer(INPUTS, training=True)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DropoutCell(LSTMCell(4), state=1.0), r"`state` must be in \[0, 1\), received 1.0"),
        (lambda: DropoutCell(4), "must be a recurrent cell, .* received 4"),
        (lambda: ZoneoutCell(keras.layers.Dense(4)), "must be a recurrent cell"),
        (lambda: ZoneoutCell(stacked([LSTMCell(4)])), "a single cell, received the stack"),
        (lambda: ZoneoutCell(LSTMCell(4), zoneout=2), r"`zoneout` must be in \[0, 1\), received 2"),
        (lambda: ZoneoutCell(LSTMCell(4), [0.1]), r"each of the 2 states .* received \[0.1\]"),
        (lambda: ZoneoutCell(DropoutCell(LSTMCell(4))), "put the ZoneoutCell inside it"),
    ],
)
def test_invalid_noise_cell_arguments_raise_value_error(make, words):
    with pytest.raises(ValueError, match=words):
        make()
