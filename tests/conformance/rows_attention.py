"""Rows of attention layers with one head and a state; see `conformance.table`."""

from functools import partial
from typing import Any

import keras
from conformance import steps
from conformance.harness import Row
from keras import ops

from keras_seq import layers

LOCATION = {"units": 8, "filters": 3, "kernel_size": 3}
# With a bias of -1, some probability is left for each step.
MONOTONIC = {"score_bias_init": -1.0}


def monotonic_cell(input_feeding: bool = True) -> layers.AttentionCell:
    return layers.AttentionCell(
        keras.layers.GRUCell(8),
        layers.BahdanauMonotonicAttention(8, **MONOTONIC),
        input_feeding=input_feeding,
    )


def location_cell() -> layers.AttentionCell:
    attention = layers.LocationSensitiveAttention(**LOCATION)
    return layers.AttentionCell(keras.layers.LSTMCell(8), attention, query="previous")


def one_step(layer: layers.AttentionCell, arrays: dict[str, Any]) -> Any:
    """Runs one step of a sequence, or of hypotheses after one step."""
    read = {name: array for name, array in arrays.items() if name not in ("hidden", "fed")}
    seen = layer.attention.initial_state(arrays["value"])
    if len(arrays["inputs"].shape) == 3:
        seen = ops.stack([seen] * steps.HYPOTHESES, axis=1)
    states = {"cell": [arrays["hidden"]], "attentional_state": arrays["fed"], "attention": seen}
    return layer(states=states, **read)


def whole_target(layer: layers.AttentionDecoder, arrays: dict[str, Any]) -> Any:
    outputs, _, weights = layer(**arrays, return_weights=True)
    return outputs, weights


ROWS: list[Row] = [
    Row(
        "AttentionCell-monotonic",
        make=monotonic_cell,
        inputs={"inputs": "BD", "hidden": "BU", "fed": "BU", "value": "BSE"},
        masks={"value_mask": "S"},
        outputs=["BU", "BS", "BU", "BU", "BS"],
        call=one_step,
        step=partial(steps.cell_with_beam, one_step),
    ),
    *(
        Row(
            f"AttentionDecoder-{name}",
            make=lambda cell=cell: layers.AttentionDecoder(cell()),
            inputs={"inputs": "BTD", "value": "BSE"},
            masks={"value_mask": "S"},
            outputs=["BTU", "BTS"],
            call=whole_target,
            step=steps.attention_decoder,
        )
        for name, cell in (
            ("monotonic", monotonic_cell),
            ("monotonic-unfed", partial(monotonic_cell, input_feeding=False)),
            ("location-previous", location_cell),
        )
    ),
    *(
        Row(
            name,
            make=make,
            inputs={"query": "BTD", "value": "BSE"},
            masks={"query_mask": "T", "value_mask": "S"},
            outputs=["BTE", "BTS"],
            step=steps.attention_with_state,
        )
        for name, make in (
            (
                "BahdanauMonotonicAttention",
                partial(layers.BahdanauMonotonicAttention, 8, normalize=True, **MONOTONIC),
            ),
            (
                "LuongMonotonicAttention",
                partial(layers.LuongMonotonicAttention, scale=True, **MONOTONIC),
            ),
            ("LocationSensitiveAttention", partial(layers.LocationSensitiveAttention, **LOCATION)),
            (
                "LocationSensitiveAttention-cumulative",
                partial(
                    layers.LocationSensitiveAttention, cumulative=True, smooth=True, **LOCATION
                ),
            ),
        )
    ),
]
