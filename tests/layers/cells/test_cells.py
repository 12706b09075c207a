"""Every cell against numpy: one step, and inside `RNN` over rows of several lengths."""

from functools import partial

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from differentiation import gradients, quick
from keras import ops, tree
from layers.cells import plain_cells as plain

from keras_seq.layers import (
    RNN,
    ESNCell,
    GRUCell,
    LayerNormLSTMCell,
    LayerNormSimpleRNNCell,
    LSTMCell,
    NASCell,
    PeepholeLSTMCell,
)

pytestmark = [pytest.mark.jax, pytest.mark.torch]

FEATURES, UNITS, STEPS = 3, 4, 5
LENGTHS = (5, 3, 1)
CELLS = {
    **{
        f"gru-{reset}-{update}": (
            partial(GRUCell, UNITS, reset=reset, update=update),
            partial(plain.gru, reset=reset, update=update),
        )
        for reset in ("after", "before", "none")
        for update in ("keep", "write")
    },
    "lstm": (partial(LSTMCell, UNITS), plain.lstm),
    "lstm-linear": (
        partial(LSTMCell, UNITS, output_activation=None),
        partial(plain.lstm, output_activation=lambda carry: carry),
    ),
    "lstm-without-bias": (partial(LSTMCell, UNITS, use_bias=False), plain.lstm),
    "peephole-lstm": (partial(PeepholeLSTMCell, UNITS), plain.peephole_lstm),
    **{
        f"layer-norm-lstm-{carry}": (
            partial(LayerNormLSTMCell, UNITS, carry=carry),
            partial(plain.layer_norm_lstm, carry=carry),
        )
        for carry in ("normalized", "plain")
    },
    "layer-norm-simple": (partial(LayerNormSimpleRNNCell, UNITS), plain.layer_norm_simple),
    "nas": (partial(NASCell, UNITS), plain.nas),
    "nas-projected": (partial(NASCell, 6, projection=UNITS, use_bias=True), plain.nas),
    "esn": (partial(ESNCell, UNITS, leaky=0.3), partial(plain.esn, leaky=0.3)),
}
every_cell = pytest.mark.parametrize("name", CELLS)


def inputs_of(steps=STEPS):
    return np.random.default_rng(0).normal(size=(3, steps, FEATURES)).astype("float32")


def made(name):
    """A built cell with random weights, and its step in numpy."""
    cell, step = CELLS[name][0](), CELLS[name][1]
    cell.build((None, FEATURES))
    cell.built = True
    reference.randomize(cell)
    return cell, partial(step, weights=plain.weights_of(cell))


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@every_cell
def test_cell_step_equals_numpy(name):
    cell, step = made(name)
    generator = np.random.default_rng(1)
    states = [
        generator.normal(size=(3, n)).astype("float32") for n in tree.flatten(cell.state_size)
    ]
    x = inputs_of()[:, 0]
    output, new_states = quick(cell)(ops.convert_to_tensor(x), list(map(ops.array, states)))
    for row in range(3):
        expected, expected_states = step(x[row], [state[row] for state in states])
        np.testing.assert_allclose(numpy_of(output)[row], expected, atol=1e-5)
        for got, wanted in zip(new_states, expected_states, strict=True):
            np.testing.assert_allclose(numpy_of(got)[row], wanted, atol=1e-5)


@every_cell
@pytest.mark.parametrize("backwards", [False, True], ids=["forward", "backward"])
def test_rnn_over_padded_rows_equals_numpy(name, backwards):
    cell, step = made(name)
    layer = RNN(cell, return_sequences=True, return_state=True, go_backwards=backwards)
    inputs = inputs_of()
    mask = np.arange(STEPS) < np.array(LENGTHS)[:, None]
    outputs, *states = quick(lambda inputs: layer(inputs, mask=mask))(ops.convert_to_tensor(inputs))
    for row, length in enumerate(LENGTHS):
        real = inputs[row, :length][:: -1 if backwards else 1]
        expected, last = plain.unroll(step, real, tree.flatten(cell.state_size))
        # Going backwards, the layer reads the padding first.
        got = numpy_of(outputs)[row][-length:] if backwards else numpy_of(outputs)[row][:length]
        np.testing.assert_allclose(got, expected, atol=1e-5)
        for state, wanted in zip(states, last, strict=True):
            np.testing.assert_allclose(numpy_of(state)[row], wanted, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["layer-norm-lstm-normalized", "layer-norm-lstm-plain", "layer-norm-simple", "lstm"]
)
def test_gradients_in_a_loop_equal_central_differences_of_numpy(name):
    cell, step = made(name)
    layer = RNN(cell)
    row = inputs_of(3)[:1]
    (factors,) = np.random.default_rng(2).normal(size=(1, UNITS))
    (by_inputs,), by_weights = gradients(
        lambda inputs: ops.sum(ops.multiply(layer(inputs), factors.astype("float32"))),
        [row],
        cell.trainable_weights,
    )
    inputs, weights = row[0].astype("float64"), step.keywords["weights"]

    def slopes(array):
        """Returns the derivatives by each number of an array that `step` reads."""
        found = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            value, sides = array[place], []
            for array[place] in (value + 1e-5, value - 1e-5):
                outputs, _ = plain.unroll(step, inputs, tree.flatten(cell.state_size))
                sides.append(outputs[-1] @ factors)
            array[place] = value
            found[place] = (sides[0] - sides[1]) / 2e-5
        return found

    np.testing.assert_allclose(by_inputs[0], slopes(inputs), rtol=0, atol=1e-4)
    assert len(by_weights) == len(weights)
    for gradient, array in zip(by_weights, weights.values(), strict=True):
        np.testing.assert_allclose(gradient, slopes(array), rtol=0, atol=1e-4)


def test_forget_gates_start_open():
    for cell in (LSTMCell(2), PeepholeLSTMCell(2), LayerNormLSTMCell(2)):
        cell.build((None, 3))
        np.testing.assert_array_equal(numpy_of(cell.bias), [0, 0, 1, 1, 0, 0, 0, 0])
    cell = LSTMCell(2, unit_forget_bias=False)
    cell.build((None, 3))
    assert not numpy_of(cell.bias).any()


def test_initial_peephole_weights_of_the_gates_differ():
    cell = PeepholeLSTMCell(8)
    cell.build((None, FEATURES))
    first, second, third = (numpy_of(weight) for weight in cell.peepholes)
    assert (first != second).all() and (second != third).all() and first.any()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GRUCell(0), "`units` must be a positive integer, received 0"),
        (lambda: LSTMCell(2.5), "`units` must be a positive integer, received 2.5"),
        (lambda: GRUCell(4, reset="never"), '"after", "before" or "none", received \'never\''),
        (lambda: GRUCell(4, update="z"), '"keep" or "write", received \'z\''),
        (lambda: GRUCell(4, dropout=1.0), r"`dropout` must be in \[0, 1\), received 1.0"),
        (lambda: NASCell(4, recurrent_dropout=-1), r"`recurrent_dropout` must be in \[0, 1\)"),
        (
            lambda: NASCell(4, projection=0),
            "`projection` must be None or a positive integer, received 0",
        ),
        (lambda: LayerNormLSTMCell(4, carry="c"), '"normalized" or "plain", received \'c\''),
        (lambda: ESNCell(4, connectivity=0), r"`connectivity` must be in \(0, 1\], received 0"),
        (lambda: ESNCell(4, leaky=2), r"`leaky` must be in \(0, 1\], received 2"),
        (lambda: ESNCell(4, spectral_radius=0), "`spectral_radius` must be positive, received 0"),
    ],
)
def test_invalid_cell_arguments_raise_value_error(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_cell_inputs_of_wrong_rank_or_width_raise_value_error():
    with pytest.raises(ValueError, match=r"one step, .* received \(2, 5, 3\)"):
        GRUCell(4).build((2, 5, 3))
    with pytest.raises(ValueError, match="known features, received"):
        GRUCell(4).build((2, None))
    cell, _ = made("lstm")
    with pytest.raises(ValueError, match=r"built for 3 input features, received .* \(2, 5\)"):
        cell(np.ones((2, 5)), cell.get_initial_state(2))


def test_a_reservoir_is_sparse_scaled_and_not_trained():
    cell = ESNCell(60, connectivity=0.2, spectral_radius=0.7, seed=3)
    cell.build((None, FEATURES))
    weights = numpy_of(cell.recurrent_kernel).astype("float64")
    assert abs(np.linalg.eigvals(weights)).max() == pytest.approx(0.7, rel=1e-4)
    # Three standard deviations of the share of units dropped among 3,600.
    assert abs((weights != 0).mean() - 0.2) < 3 * (0.2 * 0.8 / 3600) ** 0.5
    assert cell.trainable_weights == [] and len(cell.weights) == 3
    again = ESNCell(60, connectivity=0.2, seed=3)
    again.build((None, FEATURES))
    assert ((numpy_of(again.recurrent_kernel) != 0) == (weights != 0)).all()


def test_esn_reservoir_without_connections_stays_zero():
    start = keras.initializers.Constant(1.0)
    cell = ESNCell(2, connectivity=1e-9, recurrent_initializer=start)
    cell.build((None, FEATURES))
    assert not numpy_of(cell.recurrent_kernel).any()
