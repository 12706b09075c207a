"""The loop of `RNN`: masks, directions, stacks, states, and errors for invalid input."""

from functools import partial

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from differentiation import gradients
from keras import ops
from layers.cells import plain_cells as plain

from keras_seq.layers import (
    RNN,
    GRUCell,
    LayerNormLSTMCell,
    LSTMCell,
    NASCell,
    ResidualCell,
    bidirectional,
    stacked,
)

pytestmark = pytest.mark.jax

FEATURES, UNITS, STEPS = 3, 4, 5
LENGTHS = (5, 3, 1)
INPUTS = np.random.default_rng(0).normal(size=(3, STEPS, FEATURES)).astype("float32")
RIGHT = np.arange(STEPS) < np.array(LENGTHS)[:, None]
MASKS = {"right": RIGHT, "left": RIGHT[:, ::-1], "between": RIGHT[:, [0, 3, 1, 4, 2]]}
every_mask = pytest.mark.parametrize("where", MASKS)


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def randomized(layer, features=FEATURES):
    layer.build((None, None, features))
    reference.randomize(layer)
    return layer


def numpy_loop(step, inputs, mask, backwards=False):
    """Outputs `(B, T, U)`, 0 at masked steps, and the last output and states of each row."""
    outputs, last = np.zeros((*inputs.shape[:2], UNITS)), []
    for row, real in enumerate(mask):
        places = np.flatnonzero(real)[:: -1 if backwards else 1]
        outputs[row, places], states = step(inputs[row, places])
        last.append((outputs[row, places[-1]], states))
    return outputs, last


@every_mask
def test_bidirectional_rnn_reads_real_steps_and_keeps_outputs_aligned(where):
    mask = MASKS[where]
    layer = randomized(bidirectional(GRUCell(UNITS), return_state=True))
    outputs, forward, backward = map(numpy_of, layer(INPUTS, mask=mask))
    for half, loop, last, backwards in (
        (outputs[..., :UNITS], layer.forward_layer, forward, False),
        (outputs[..., UNITS:], layer.backward_layer, backward, True),
    ):
        step = partial(plain.gru, weights=plain.weights_of(loop.cell))
        unroll = partial(plain.unroll, step, sizes=[UNITS])
        expected, ends = numpy_loop(unroll, INPUTS, mask, backwards)
        np.testing.assert_allclose(np.where(mask[..., None], half, 0), expected, atol=1e-5)
        np.testing.assert_allclose(last, [states[0] for _, states in ends], atol=1e-5)


@every_mask
@pytest.mark.parametrize("backwards", [False, True], ids=["forward", "backward"])
def test_the_last_output_is_that_of_the_last_real_step(where, backwards):
    # The output of a residual cell is not one of its states.
    mask = MASKS[where]
    inputs = np.repeat(INPUTS[..., :1], UNITS, axis=-1) * np.arange(1, UNITS + 1, dtype="float32")
    layer = randomized(RNN(ResidualCell(LSTMCell(UNITS)), go_backwards=backwards), UNITS)
    weights = plain.weights_of(layer.cell.cell)

    def unroll(real):
        outputs, states = plain.unroll(partial(plain.lstm, weights=weights), real, [UNITS] * 2)
        return outputs + real, states

    _, ends = numpy_loop(unroll, inputs, mask, backwards)
    got = numpy_of(layer(inputs, mask=mask))
    np.testing.assert_allclose(got, [output for output, _ in ends], atol=1e-5)


def test_residual_stack_equals_its_cells_run_in_sequence():
    cells = [LSTMCell(UNITS), LSTMCell(UNITS), GRUCell(UNITS)]
    layer = randomized(RNN(stacked(cells, residual=True), return_sequences=True, return_state=True))
    outputs, *states = layer(INPUTS, mask=RIGHT)
    kinds = [(plain.lstm, 2), (plain.lstm, 2), (plain.gru, 1)]
    for row, length in enumerate(LENGTHS):
        x = INPUTS[row, :length]
        for level, (cell, (step, parts)) in enumerate(zip(cells, kinds, strict=True)):
            step = partial(step, weights=plain.weights_of(cell))
            y, last = plain.unroll(step, x, [UNITS] * parts)
            x = x + y if level else y
            for got, expected in zip(states[level], last, strict=True):
                np.testing.assert_allclose(numpy_of(got)[row], expected, atol=1e-5)
        np.testing.assert_allclose(numpy_of(outputs)[row, :length], x, atol=1e-5)
    with pytest.raises(ValueError, match="at least one cell"):
        stacked([])


def test_nan_in_padding_changes_no_gradient():
    mask = MASKS["between"]
    layer = randomized(
        bidirectional(LayerNormLSTMCell(UNITS), NASCell(UNITS), return_sequences=False)
    )

    def loss(inputs):
        return ops.sum(ops.square(layer(inputs, mask=mask)))

    clean, spoiled = (
        gradients(loss, [np.where(mask[..., None], INPUTS, pad).astype("float32")], layer.weights)
        for pad in (0.0, np.nan)
    )
    for left, right in zip(clean[0] + clean[1], spoiled[0] + spoiled[1], strict=True):
        np.testing.assert_array_equal(left, right)
    assert not spoiled[0][0][~mask].any() and all(gradient.any() for gradient in spoiled[1])


def test_fully_masked_row_keeps_its_initial_state_and_outputs_0():
    layer = randomized(RNN(LSTMCell(UNITS), return_state=True))
    states = [ops.ones((3, UNITS)), 2 * ops.ones((3, UNITS))]
    output, hidden, carry = layer(INPUTS, initial_state=states, mask=np.zeros((3, STEPS), bool))
    assert (numpy_of(output) == 0).all()
    assert (numpy_of(hidden) == 1).all() and (numpy_of(carry) == 2).all()


def test_rnn_over_two_pieces_equals_one_pass():
    whole = randomized(RNN([GRUCell(UNITS), LSTMCell(UNITS)], return_state=True))
    output, *states = whole(INPUTS)
    _, *first = whole(INPUTS[:, :2])
    again, *second = whole(INPUTS[:, 2:], initial_state=first)
    keras.tree.map_structure(
        lambda left, right: np.testing.assert_allclose(numpy_of(left), numpy_of(right), atol=1e-6),
        [output, states],
        [again, second],
    )
    stateful = RNN(whole.cell, stateful=True)
    stateful(INPUTS[:, :2])
    with pytest.raises(ValueError, match=r"shapes \[\(2, 4\), .* received \[\(3, 4\), "):
        stateful(INPUTS[:2, 2:])
    np.testing.assert_allclose(numpy_of(stateful(INPUTS[:, 2:])), numpy_of(output), atol=1e-6)


def test_unrolled_rnn_equals_the_loop():
    layer = randomized(RNN(LayerNormLSTMCell(UNITS), return_sequences=True, return_state=True))
    unrolled = RNN(layer.cell, return_sequences=True, return_state=True, unroll=True)
    for mask in (None, RIGHT):
        for got, expected in zip(
            unrolled(INPUTS, mask=mask), layer(INPUTS, mask=mask), strict=True
        ):
            np.testing.assert_allclose(numpy_of(got), numpy_of(expected), atol=1e-6)


def test_float32_cell_in_a_bfloat16_rnn_computes_in_float32():
    cell = LSTMCell(UNITS, dtype="float32")
    layer = randomized(RNN(cell, dtype="mixed_bfloat16"))
    output = layer(INPUTS)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    # Only the inputs and the output are rounded, no intermediate value.
    rounded = numpy_of(ops.cast(ops.cast(INPUTS, "bfloat16"), "float32"))
    exact = ops.cast(ops.cast(RNN(cell)(rounded), "bfloat16"), "float32")
    np.testing.assert_array_equal(numpy_of(ops.cast(output, "float32")), numpy_of(exact))


def test_internal_loops_do_not_advance_the_rnn_name_counter():
    keras.utils.clear_session(free_memory=False)
    RNN(LSTMCell(UNITS))(INPUTS)
    assert RNN(LSTMCell(UNITS)).name == "rnn_1"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda layer: layer(INPUTS[0]), r"\(batch, steps, features\), .* shape \(5, 3\)"),
        (
            lambda layer: layer(INPUTS, mask=RIGHT[:, :4]),
            r"of what it masks, \(3, 5\), received \(3, 4\)",
        ),
        (lambda layer: layer(INPUTS, mask=RIGHT[..., None]), r"received \(3, 5, 1\)"),
        (
            lambda layer: layer(INPUTS, initial_state=[ops.ones((3, UNITS))]),
            r"the shapes \[\(3, 4\), \(3, 4\)\] of .* received \[\(3, 4\)\]",
        ),
        (
            lambda layer: layer(INPUTS, initial_state=[ops.ones((3, 9)), ops.ones((3, 9))]),
            r"received \[\(3, 9\), \(3, 9\)\]",
        ),
        (lambda layer: RNN(ResidualCell(layer.cell))(INPUTS), "as wide as the output of its cell"),
    ],
)
def test_invalid_rnn_calls_raise_value_error(call, words):
    with pytest.raises(ValueError, match=words):
        call(RNN(LSTMCell(UNITS)))
