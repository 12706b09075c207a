"""Errors of attention layers, the cell and the decoder for invalid arguments."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq import layers

pytestmark = pytest.mark.jax

ATTENTIONS = [
    layers.BahdanauAttention(8),
    layers.LuongAttention("general"),
    layers.LocationSensitiveAttention(8, 2, 3),
    layers.BahdanauMonotonicAttention(8),
    layers.LuongMonotonicAttention(),
]
for attention in ATTENTIONS:
    attention.build((None, None, 4), (None, None, 6))
every_attention = pytest.mark.parametrize(
    "attention", ATTENTIONS, ids=lambda layer: type(layer).__name__
)

WRONG_MASKS = [
    ({"value_mask": np.ones((3, 4), bool)}, r"of what it masks, \(3, 5\), received \(3, 4\)"),
    ({"value_mask": np.ones((3, 5, 1), bool)}, r"received \(3, 5, 1\): one truth value for each"),
    ({"value_mask": np.ones((3, 5), "int32")}, "received int32: compare it first, as in"),
]
WRONG_VALUES = [
    ({"value": np.ones((3, 6))}, r"`value` must have the axes \(batch, .*received the shape"),
    ({"value": np.ones((3, 5, 4))}, r"`value` must have 6 features, .*received 4 in .*\(3, 5, 4\)"),
    ({"value": np.ones((3, 5, 6), "int32")}, "`value` must hold floats, received int32 .*embedd"),
    ({"value": np.ones((2, 5, 6))}, r"equally many rows, received .* and \(2, 5, 6\): repeat"),
]


def tensors(arguments):
    return {
        name: ops.convert_to_tensor(array, "float32" if array.dtype == "float64" else None)
        for name, array in arguments.items()
    }


@every_attention
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"query": np.ones((3, 4))}, r"`query` must have the axes \(batch, steps, features\), rec"),
        ({"query": np.ones((3, 2, 6))}, r"`query` must have 4 features, .*received 6 in the shape"),
        ({"query": np.ones((3, 2, 4), "int32")}, "`query` must hold floats, received int32"),
        ({"query_mask": np.ones((3, 3), bool)}, r"`query_mask` .*\(3, 2\), received \(3, 3\)"),
        *WRONG_VALUES,
        *WRONG_MASKS,
    ],
)
def test_attention_call_with_mismatched_arguments_raises_value_error(attention, wrong, words):
    arguments = {"query": np.ones((3, 2, 4)), "value": np.ones((3, 5, 6)), **wrong}
    with pytest.raises(ValueError, match=words):
        attention(**tensors(arguments))


@every_attention
def test_attention_built_on_wrong_axes_raises_value_error(attention):
    new = type(attention).from_config(attention.get_config())
    with pytest.raises(ValueError, match=r"`query` must have the axes .*the shape \(3, 4\)"):
        new.build((3, 4), (3, 5, 6))


def made_cell(attention=None, **arguments):
    cell = layers.AttentionCell(
        keras.layers.GRUCell(4), layers.BahdanauAttention(8) if attention is None else attention
    )
    cell.build((3, 2), (3, 5, 6), **arguments)
    cell.built = True
    return cell


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"inputs": np.ones((3, 1, 1, 2))}, r"`inputs` .*\(batch, features\) or \(batch, hypoth"),
        ({"inputs": np.ones((3, 3))}, "`inputs` must have 2 features, .* received 3"),
        ({"inputs": np.ones((3, 2), "int32")}, "`inputs` must hold floats, received int32"),
        ({"summary": np.ones((3, 2))}, "`summary` must be given never"),
        *WRONG_VALUES,
        *WRONG_MASKS,
    ],
)
def test_attention_cell_with_mismatched_arguments_raises_value_error(wrong, words):
    cell = made_cell()
    arguments = {"inputs": np.ones((3, 2)), "value": np.ones((3, 5, 6)), **wrong}
    with pytest.raises(ValueError, match=words):
        cell(states=cell.get_initial_state(3), **tensors(arguments))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "`summary` must be given at every call, as when this layer was built"),
        ({"summary": np.ones((3, 3))}, "`summary` must have 2 features, .* received 3"),
        ({"summary": np.ones((3, 1, 2))}, r"`summary` must have the axes \(batch, features\)"),
        ({"summary": np.ones((2, 2))}, r"`inputs` and `summary` .* rows, .* and \(2, 2\)"),
    ],
)
def test_missing_or_mismatched_summary_raises_value_error(wrong, words):
    cell = made_cell(summary_shape=(3, 2))
    arguments = {"inputs": np.ones((3, 2)), "value": np.ones((3, 5, 6)), **wrong}
    with pytest.raises(ValueError, match=words):
        cell(states=cell.get_initial_state(3), **tensors(arguments))


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (
            {"cell": []},
            r"a dict of \['attentional_state', 'cell'\], received \['cell'\]: start from `get_init",
        ),
        ([np.ones((3, 4))], "received list: start from `get_initial_state`"),
        (
            {"cell": [], "attentional_state": np.ones((3, 2, 4))},
            r"`attentional_state` must have 2 axes, received the shape \(3, 2, 4\)",
        ),
    ],
)
def test_attention_cell_with_foreign_states_raises_value_error(states, words):
    with pytest.raises(ValueError, match=words):
        made_cell()(ops.ones((3, 2)), states, ops.ones((3, 5, 6)))


def test_unrepeated_state_for_several_hypotheses_raises_value_error():
    cell = made_cell(layers.LuongMonotonicAttention())
    value = ops.ones((3, 5, 6))
    with pytest.raises(
        ValueError, match=r"`(attentional_state|attention)` must have 3 axes, .*repeat it for"
    ):
        cell(ops.ones((3, 2, 2)), cell.get_initial_state(3, value), value)


def test_initial_state_without_the_needed_value_raises_value_error():
    cell = made_cell(layers.LuongMonotonicAttention())
    with pytest.raises(ValueError, match=r"no `value`: call `get_initial_state\(batch_size, value"):
        cell.get_initial_state(3)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((3, 2), (3, 6)), r"`value` must have the axes .*\(3, 6\)"),
        (((2,), (3, 5, 6)), r"`inputs` must have the axes .*\(2,\)"),
        (
            ((3, None), (3, 5, 6)),
            r"axis of `inputs` must be known, received .* \(3, None\)",
        ),
        (((3, 2), (3, 5, 6), (3, None)), "feature axis of `summary` must be known"),
    ],
)
def test_attention_cell_built_on_invalid_shapes_raises_value_error(shapes, words):
    cell = layers.AttentionCell(keras.layers.GRUCell(4), layers.BahdanauAttention(8))
    with pytest.raises(ValueError, match=words):
        cell.build(*shapes)


def test_attention_cell_of_invalid_parts_raises_value_error():
    with pytest.raises(ValueError, match=r"has a `state_size`, received <.*: pass what `keras"):
        layers.AttentionCell(keras.layers.Dense(4), layers.BahdanauAttention(8))
    with pytest.raises(ValueError, match=r"`project` and `attend`, received <.*with one head"):
        layers.AttentionCell(keras.layers.GRUCell(4), keras.layers.Attention())


@pytest.mark.parametrize(
    "cell",
    [
        layers.ResidualCell(layers.GRUCell(4)),
        keras.layers.StackedRNNCells(
            [layers.GRUCell(4), layers.DropoutCell(layers.GRUCell(4), output=0.1)]
        ),
    ],
    ids=["residual", "stack with dropout"],
)
def test_previous_query_needs_a_cell_whose_output_is_a_state(cell):
    layers.AttentionCell(cell, layers.BahdanauAttention(8))
    with pytest.raises(ValueError, match='received a .*Cell .* none of its states: use query="cu'):
        layers.AttentionCell(cell, layers.BahdanauAttention(8), query="previous")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"inputs": np.ones((3, 2))}, r"`inputs` must have the axes \(batch, steps, features\)"),
        ({"inputs": np.ones((3, 7, 3))}, "`inputs` must have 2 features, .* received 3"),
        ({"inputs": np.ones((3, 7, 2), "int32")}, "`inputs` must hold floats, received int32"),
        ({"summary": np.ones((3, 2))}, "`summary` must be given never"),
        *WRONG_VALUES,
        *WRONG_MASKS,
    ],
)
def test_attention_decoder_with_mismatched_arguments_raises_value_error(wrong, words):
    decoder = layers.AttentionDecoder(made_cell())
    arguments = {"inputs": np.ones((3, 7, 2)), "value": np.ones((3, 5, 6)), **wrong}
    with pytest.raises(ValueError, match=words):
        decoder(**tensors(arguments))


def test_attention_decoder_with_foreign_states_raises_value_error():
    decoder = layers.AttentionDecoder(made_cell())
    with pytest.raises(
        ValueError, match=r"a dict of \['attentional_state', 'cell'\], received \['attention'"
    ):
        decoder(ops.ones((3, 7, 2)), ops.ones((3, 5, 6)), states={"attention": ops.ones((3, 5))})


def test_attention_decoder_of_a_plain_cell_raises_value_error():
    with pytest.raises(ValueError, match=r"must be an AttentionCell, received <GRUCell.*: wrap"):
        layers.AttentionDecoder(keras.layers.GRUCell(4))
