"""Cells inside an `AttentionCell`: the loop over a target equals single steps."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from differentiation import quick
from keras import ops

from keras_seq.layers import (
    AttentionCell,
    AttentionDecoder,
    DropoutCell,
    ESNCell,
    GRUCell,
    LayerNormLSTMCell,
    LSTMCell,
    LuongAttention,
    NASCell,
    ResidualCell,
    ZoneoutCell,
    stacked,
)

UNITS, STEPS = 4, 3
INPUTS = np.random.default_rng(0).normal(size=(2, STEPS, 3)).astype("float32")
VALUE = np.random.default_rng(1).normal(size=(2, 5, UNITS)).astype("float32")
SUMMARY = np.random.default_rng(2).normal(size=(2, 2)).astype("float32")
CELLS = {
    "gru": lambda: GRUCell(UNITS, reset="before", update="write"),
    "layer-norm-lstm": lambda: LayerNormLSTMCell(UNITS),
    "projected-nas": lambda: NASCell(6, projection=UNITS),
    "zoneout": lambda: ZoneoutCell(LSTMCell(UNITS)),
    "residual-stack": lambda: stacked(
        [keras.layers.LSTMCell(UNITS), GRUCell(UNITS), ESNCell(UNITS)], residual=True
    ),
}


@pytest.mark.parametrize("input_feeding", [True, False], ids=["fed", "unfed"])
@pytest.mark.parametrize("name", CELLS)
def test_decoding_a_full_target_equals_single_steps(name, input_feeding):
    cell = AttentionCell(CELLS[name](), LuongAttention("dot"), input_feeding=input_feeding)
    decoder = AttentionDecoder(cell)
    decoder(INPUTS, VALUE, summary=SUMMARY)
    reference.randomize(decoder)
    inputs, value, summary = map(ops.convert_to_tensor, (INPUTS, VALUE, SUMMARY))
    outputs, _ = quick(lambda *a: decoder(*a[:2], summary=a[2]))(inputs, value, summary)
    step = quick(lambda x, states: cell(x, states, value, summary=summary)[:2])
    states = cell.get_initial_state(2)
    for at in range(STEPS):
        output, states = step(inputs[:, at], states)
        got = ops.convert_to_numpy(outputs)[:, at]
        np.testing.assert_allclose(got, ops.convert_to_numpy(output), atol=1e-5)


def test_residual_cell_with_input_feeding_equals_single_steps():
    # The step reads 3 features and 2 of the attentional vector, which has as many as the cell has
    # units.
    cell = AttentionCell(
        ResidualCell(GRUCell(5)), LuongAttention("general"), units=2, query="current"
    )
    decoder = AttentionDecoder(cell)
    outputs, _ = decoder(INPUTS, VALUE)
    states = cell.get_initial_state(2)
    for at in range(STEPS):
        output, states, _ = cell(INPUTS[:, at], states, VALUE)
        np.testing.assert_allclose(
            ops.convert_to_numpy(outputs)[:, at], ops.convert_to_numpy(output), atol=1e-5
        )


@pytest.mark.parametrize("input_feeding", [True, False], ids=["fed", "unfed"])
def test_cells_drop_under_attention_in_training_only(input_feeding):
    cells = stacked(
        [
            LSTMCell(UNITS, dropout=0.5, recurrent_dropout=0.5),
            DropoutCell(GRUCell(UNITS), input=0.5, output=0.5, per_step=True),
            ZoneoutCell(GRUCell(UNITS), zoneout=0.5),
        ]
    )
    attention = LuongAttention("dot", dropout=0.5)
    decoder = AttentionDecoder(AttentionCell(cells, attention, input_feeding=input_feeding))
    for training in (True, False):
        one, other = (
            ops.convert_to_numpy(decoder(INPUTS, VALUE, summary=SUMMARY, training=training)[0])
            for _ in range(2)
        )
        assert np.isfinite(one).all()
        assert (one == other).all() != training
