"""Compares cells with the equal cells of Keras, and converts each to the other and back."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from keras import ops

from keras_seq.layers import RNN, GRUCell, LayerNormSimpleRNNCell, LSTMCell

INPUTS = np.random.default_rng(0).normal(size=(3, 5, 3)).astype("float32")
MASK = np.arange(5) < np.array([5, 3, 1])[:, None]
THEIRS = {
    "gru": lambda **options: keras.layers.GRU(4, **options),
    "gru-before": lambda **options: keras.layers.GRU(
        4, reset_after=False, kernel_regularizer="l2", bias_regularizer="l1", **options
    ),
    "gru-plain": lambda **options: keras.layers.GRU(
        4, use_bias=False, activation="relu", recurrent_activation="hard_sigmoid", **options
    ),
    "lstm": lambda **options: keras.layers.LSTM(4, recurrent_regularizer="l2", **options),
    "lstm-plain": lambda **options: keras.layers.LSTM(
        4, use_bias=False, activation="softsign", unit_forget_bias=False, **options
    ),
}


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def trained(name, **options):
    """Returns a Keras layer with random weights."""
    layer = THEIRS[name](return_sequences=True, return_state=True, **options)
    layer.build((None, None, 3))
    reference.randomize(layer)
    return layer


def ours_of(source):
    kind = GRUCell if "gru" in source.name else LSTMCell
    return kind.from_keras(source)


def outputs_of(layer, inputs=INPUTS):
    return [numpy_of(output) for output in layer(inputs, mask=MASK)]


def assert_equal(got, expected):
    for left, right in zip(got, expected, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-6)


@pytest.mark.parametrize("name", THEIRS)
def test_conversion_from_keras_and_back_keeps_outputs_and_config(name):
    theirs = trained(name)
    cell = ours_of(theirs)
    options = {"return_sequences": True, "return_state": True}
    expected = outputs_of(theirs)
    assert_equal(outputs_of(RNN(cell, **options)), expected)
    # Cells of keras-seq also run in the loop of Keras.
    assert_equal(outputs_of(keras.layers.RNN(cell, **options)), expected)
    back = cell.to_keras(**options)
    assert type(back) is type(theirs)
    assert_equal(outputs_of(back), expected)
    own = {"name", "seed", "build_config"}
    assert {k: v for k, v in back.get_config().items() if k not in own} == {
        k: v for k, v in theirs.get_config().items() if k not in own
    }


@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_keras_cells_and_unbuilt_layers_convert_too(name):
    theirs = trained(name)
    cell = ours_of(theirs.cell)
    states = cell.get_initial_state(3)
    expected, _ = theirs.cell(INPUTS[:, 0], states)
    assert_equal([numpy_of(cell(INPUTS[:, 0], states)[0])], [numpy_of(expected)])
    unbuilt = ours_of(THEIRS[name](dropout=0.25, recurrent_dropout=0.5, dtype="float16"))
    assert not unbuilt.built and not unbuilt.to_keras().built
    back = unbuilt.to_keras().cell
    assert (back.dropout, back.recurrent_dropout, back.compute_dtype) == (0.25, 0.5, "float16")


@pytest.mark.parametrize("reset", ["after", "before"])
def test_gru_write_gate_converts_to_a_keep_gate_with_negated_weights(reset):
    cell = GRUCell(4, reset=reset, update="write")
    layer = RNN(cell, return_sequences=True, return_state=True)
    layer.build((None, None, 3))
    reference.randomize(cell)
    kept = cell.to_keras(return_sequences=True, return_state=True)
    assert_equal(outputs_of(layer), outputs_of(kept))
    np.testing.assert_array_equal(
        numpy_of(kept.cell.kernel), numpy_of(cell.kernel) * ([-1] * 4 + [1] * 8)
    )


def test_keras_cells_give_equal_outputs_in_our_rnn_and_in_keras_rnn():
    for cell in (
        keras.layers.SimpleRNNCell(4),
        keras.layers.GRUCell(4, reset_after=False),
        keras.layers.StackedRNNCells([keras.layers.LSTMCell(4), keras.layers.GRUCell(2)]),
    ):
        layers = [
            kind(cell, return_sequences=True, return_state=True) for kind in (RNN, keras.layers.RNN)
        ]
        results = [keras.tree.flatten(layer(INPUTS, mask=MASK)) for layer in layers]
        assert_equal(*[map(numpy_of, result) for result in results])
        assert keras.tree.map_structure(lambda _: 0, layers[0](INPUTS)) == (
            keras.tree.map_structure(lambda _: 0, layers[1](INPUTS))
        )


@pytest.mark.parametrize("kind", [LSTMCell, keras.layers.GRUCell])
def test_stack_of_one_cell_equals_the_cell(kind):
    # The loop of Keras fails on this input.
    cell = kind(4)
    one, stack = RNN(cell, return_state=True), RNN([cell], return_state=True)
    got, expected = keras.tree.flatten(stack(INPUTS, mask=MASK)), one(INPUTS, mask=MASK)
    assert_equal(map(numpy_of, got), map(numpy_of, expected))


def test_layer_norm_cell_of_opposite_units_outputs_tanh_of_the_scale():
    # For a unit and its negation, the mean is 0 and the deviation their size: h = +-tanh(gamma).
    cell = LayerNormSimpleRNNCell(2, norm_epsilon=0.0)
    cell.build((None, 3))
    kernel = np.random.default_rng(0).normal(size=(3, 1))
    weights = [np.hstack([kernel, -kernel]), np.zeros((2, 2)), np.zeros(2), np.full(2, 0.5)]
    cell.set_weights(weights)
    output, _ = cell(INPUTS[:, 0], cell.get_initial_state(3))
    np.testing.assert_allclose(np.abs(numpy_of(output)), np.tanh(0.5), rtol=1e-5)


@pytest.mark.parametrize(
    ("convert", "words"),
    [
        (lambda: GRUCell.from_keras(keras.layers.LSTM(4)), "must be a keras.layers.GRU or a"),
        (lambda: LSTMCell.from_keras(LSTMCell(4)), "must be a keras.layers.LSTM or a"),
        (
            lambda: GRUCell.from_keras(keras.layers.GRU(4, kernel_constraint="unit_norm")),
            "have no constraints, 'gru_cell' has kernel_constraint",
        ),
        (lambda: GRUCell(4, reset="none").to_keras(), "always has a reset gate"),
        (
            lambda: GRUCell(4, update="write", recurrent_activation="hard_sigmoid").to_keras(),
            "only a sigmoid gate .*'hard_sigmoid'",
        ),
        (
            lambda: LSTMCell(4, output_activation=None).to_keras(),
            "one activation .* 'tanh' and 'linear'",
        ),
    ],
)
def test_unsupported_cell_conversions_raise_value_error(convert, words):
    with pytest.raises(ValueError, match=words):
        convert()
