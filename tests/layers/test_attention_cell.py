"""Cells with attention, step by step and over a whole target, against numpy."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from differentiation import gradients, quick
from keras import ops

from keras_seq.layers.attention.attention_cell import AttentionCell
from keras_seq.layers.attention.attention_decoder import AttentionDecoder
from keras_seq.layers.attention.bahdanau_attention import BahdanauAttention
from keras_seq.layers.attention.luong_attention import LuongAttention

LENGTHS = (5, 3, 1)
MASK = np.arange(5)[None] < np.array(LENGTHS)[:, None]
INPUTS, VALUES, UNITS, STEPS = 3, 6, 4, 4
CELLS = {
    "lstm": keras.layers.LSTMCell,
    "gru": keras.layers.GRUCell,
    "simple": keras.layers.SimpleRNNCell,
}
ATTENTIONS = {
    "bahdanau": lambda **arguments: BahdanauAttention(8, name="attention", **arguments),
    "luong": lambda **arguments: LuongAttention("general", name="attention", **arguments),
}
REFERENCES = {"bahdanau": reference.bahdanau, "luong": reference.luong}


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def arrays(steps=STEPS):
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(3, steps, INPUTS)).astype("float32")
    value = generator.normal(size=(3, 5, VALUES)).astype("float32")
    return inputs, value


def made(cell, attention=None, summary_features=None, **arguments):
    """A built decoder over a cell with random weights."""
    attention = BahdanauAttention(8) if attention is None else attention
    decoder = AttentionDecoder(AttentionCell(cell, attention, name="cell", **arguments))
    summary_shape = summary_features and (None, summary_features)
    decoder.build((None, None, INPUTS), (None, None, VALUES), summary_shape)
    reference.randomize(decoder)
    return decoder


def whole(decoder, inputs, value, **arguments):
    run = quick(
        lambda inputs, value: decoder(
            inputs, value, value_mask=MASK, return_weights=True, **arguments
        )
    )
    outputs, states, weights = run(ops.convert_to_tensor(inputs), ops.convert_to_tensor(value))
    return numpy_of(outputs), states, numpy_of(weights)


def stepwise(cell, inputs, value, states=None, **arguments):
    states = cell.get_initial_state(len(inputs)) if states is None else states
    projected = cell.attention.project(ops.convert_to_tensor(value), MASK)
    outputs, weights = [], []

    @quick
    def run(inputs, states):
        return cell(inputs, states, **projected, value_mask=MASK, **arguments)

    for step in range(inputs.shape[1]):
        output, states, step_weights = run(ops.convert_to_tensor(inputs[:, step]), states)
        outputs.append(numpy_of(output))
        weights.append(numpy_of(step_weights))
    return np.stack(outputs, axis=1), states, np.stack(weights, axis=1)


@pytest.mark.parametrize(
    ("kind", "attention"), [("lstm", "bahdanau"), ("gru", "luong"), ("simple", "bahdanau")]
)
@pytest.mark.parametrize(
    ("input_feeding", "query"),
    [(True, "current"), (False, "current"), (True, "previous"), (False, "previous")],
)
def test_decoder_and_single_steps_equal_a_numpy_loop(kind, attention, input_feeding, query):
    decoder = made(
        CELLS[kind](UNITS, name=kind),
        ATTENTIONS[attention](),
        units=7,
        input_feeding=input_feeding,
        query=query,
    )
    inputs, value = arrays()
    named = {
        # Layers built outside a model have shorter paths than layers inside one.
        path[path.find("cell/") + len("cell/") :] if "cell/" in path else path: array
        for path, array in reference.named_arrays(decoder).items()
    }
    advance, parts = reference.CELLS[kind]
    whole_form = whole(decoder, inputs, value)
    step_form = stepwise(decoder.cell, inputs, value)
    for row, length in enumerate(LENGTHS):
        outputs, weights = reference.attention_decoder(
            inputs[row].astype("float64"),
            value[row, :length].astype("float64"),
            [np.zeros(UNITS)] * parts,
            lambda x, states: advance(x, states, named, kind),
            lambda query, value: REFERENCES[attention](query, value, named, "attention"),
            named["kernel"],
            input_feeding,
            query,
        )
        for form in (whole_form, step_form):
            np.testing.assert_allclose(form[0][row], outputs, atol=1e-5)
            np.testing.assert_allclose(form[2][row, :, :length], weights, atol=1e-5)
            assert (form[2][row, :, length:] == 0).all()


@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize(
    "cell",
    [
        lambda: keras.layers.StackedRNNCells(
            [keras.layers.LSTMCell(5), keras.layers.GRUCell(UNITS)]
        ),
        lambda: keras.layers.StackedRNNCells([keras.layers.LSTMCell(UNITS)]),
        lambda: keras.layers.GRUCell(UNITS, reset_after=False),
        lambda: keras.layers.LSTMCell(UNITS, use_bias=False, activation="relu"),
        lambda: keras.layers.GRUCell(UNITS, use_bias=False),
    ],
    ids=["stacked", "stack-of-one", "reset-before", "lstm-relu", "gru-without-bias"],
)
def test_decoder_over_keras_cells_equals_single_steps(cell, input_feeding):
    decoder = made(cell(), input_feeding=input_feeding, query="previous", summary_features=2)
    inputs, value = arrays()
    summary = ops.convert_to_tensor(np.ones((3, 2), "float32"))
    outputs, states, weights = whole(decoder, inputs, value, summary=summary)
    expected = stepwise(decoder.cell, inputs, value, summary=summary)
    np.testing.assert_allclose(outputs, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[2], atol=1e-5)
    keras.tree.map_structure(
        lambda left, right: np.testing.assert_allclose(numpy_of(left), numpy_of(right), atol=1e-5),
        states,
        expected[1],
    )


def test_decoding_in_two_pieces_equals_one_pass():
    decoder = made(keras.layers.LSTMCell(UNITS))
    inputs, value = arrays()
    outputs, states, _ = whole(decoder, inputs, value)
    first, between, _ = whole(decoder, inputs[:, :2], value)
    second, last, _ = whole(decoder, inputs[:, 2:], value, states=between)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), outputs, atol=1e-6)
    keras.tree.map_structure(
        lambda left, right: np.testing.assert_allclose(numpy_of(left), numpy_of(right), atol=1e-6),
        states,
        last,
    )


def test_gradients_of_the_loop_equal_those_of_single_steps():
    decoder = made(keras.layers.GRUCell(UNITS))
    cell = decoder.cell
    inputs, value = arrays(steps=3)

    def in_a_loop(inputs, value):
        return ops.sum(ops.square(decoder(inputs, value, value_mask=MASK)[0]))

    def in_steps(inputs, value):
        states, total = cell.get_initial_state(3), 0.0
        for step in range(3):
            output, states, _ = cell(inputs[:, step], states, value, value_mask=MASK)
            total = total + ops.sum(ops.square(output))
        return total

    variables = decoder.trainable_variables
    got = gradients(in_a_loop, [inputs, value], variables)
    expected = gradients(in_steps, [inputs, value], variables)
    for left, right in zip(got[0] + got[1], expected[0] + expected[1], strict=True):
        assert np.abs(right).max() > 1e-4
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("query", ["current", "previous"])
def test_hypotheses_stepped_together_equal_each_stepped_alone(query):
    decoder = made(keras.layers.LSTMCell(UNITS), query=query, summary_features=2)
    cell = decoder.cell
    inputs, value = arrays(steps=2)
    projected = cell.attention.project(ops.convert_to_tensor(value), MASK)
    summary = np.ones((3, 2), "float32")
    states = keras.tree.map_structure(
        lambda state: ops.convert_to_tensor(
            np.random.default_rng(1).normal(size=(3, 2, state.shape[-1])).astype("float32")
        ),
        cell.get_initial_state(3),
    )
    together = cell(
        ops.convert_to_tensor(inputs), states, **projected, value_mask=MASK, summary=summary
    )
    for k in range(2):
        alone = cell(
            ops.convert_to_tensor(inputs[:, k]),
            keras.tree.map_structure(lambda state, k=k: state[:, k], states),
            **projected,
            value_mask=MASK,
            summary=summary,
        )
        keras.tree.map_structure(
            lambda left, right, k=k: np.testing.assert_allclose(
                numpy_of(left)[:, k], numpy_of(right), atol=1e-6
            ),
            together,
            alone,
        )


@pytest.mark.parametrize("input_feeding", [True, False])
def test_attention_dropout_reaches_the_loop(input_feeding):
    attention = LuongAttention("general", dropout=0.5, seed=1)
    decoder = made(keras.layers.GRUCell(UNITS), attention, input_feeding=input_feeding)
    inputs, value = arrays()
    dropped = whole(decoder, inputs, value, training=True)[2]
    kept = whole(decoder, inputs, value)[2]
    np.testing.assert_allclose(kept.sum(axis=-1), 1, atol=1e-6)
    real = np.broadcast_to(MASK[:, None], dropped.shape)
    share = (dropped[real] == 0).mean()
    assert 0.2 < share < 0.8
    # The first step has the same query with and without dropout.
    first, whole_first = dropped[:, 0], kept[:, 0]
    np.testing.assert_allclose(first[first > 0], 2 * whole_first[first > 0], rtol=1e-5)
    assert not np.array_equal(dropped[:, 0] == 0, dropped[:, 1] == 0)


def test_config_round_trip_keeps_cell_and_attention():
    decoder = made(keras.layers.LSTMCell(UNITS), LuongAttention("concat", units=8), units=7)
    again = AttentionDecoder.from_config(decoder.get_config())
    again.build((None, None, INPUTS), (None, None, VALUES))
    again.set_weights(decoder.get_weights())
    inputs, value = arrays()
    np.testing.assert_array_equal(whole(again, inputs, value)[0], whole(decoder, inputs, value)[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": "next"}, '"current" or "previous", received \'next\''),
        ({"units": 0}, "None or a positive integer, received 0"),
    ],
)
def test_invalid_attention_cell_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        AttentionCell(keras.layers.GRUCell(4), BahdanauAttention(8), **arguments)


def test_keras_cell_with_dropout_raises_and_suggests_a_dropout_layer():
    cells = [keras.layers.GRUCell(4), keras.layers.GRUCell(4, recurrent_dropout=0.1, name="upper")]
    with pytest.raises(ValueError, match="'upper' with dropout=0.0 and .*: put a Dropout layer"):
        AttentionCell(keras.layers.StackedRNNCells(cells), BahdanauAttention(8))
