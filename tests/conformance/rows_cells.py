"""Rows of the contract; see `conformance.table`.

A cell's row is the cell inside `RNN`, and its step form the cell alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
from conformance.harness import Row
from keras import ops

from keras_seq import layers


def step_by_step(layer: layers.RNN, arrays: dict[str, Any]) -> Any:
    """Runs the cell alone over steps with padding at the end."""
    inputs = arrays["inputs"]
    states = layer.cell.get_initial_state(batch_size=inputs.shape[0])
    outputs = []
    for step in range(inputs.shape[1]):
        output, states = layer.cell(inputs[:, step], states)
        outputs.append(output)
    return ops.stack(outputs, axis=1)


def whole(layer: layers.RNN, arrays: dict[str, Any]) -> Any:
    masks = {name: array for name, array in arrays.items() if name == "mask"}
    return layer(arrays["inputs"], **masks)


def row(name: str, cell: Callable[[], Any], **arguments: Any) -> Row:
    return Row(
        name,
        make=lambda: layers.RNN(cell(), return_sequences=True, **arguments),
        inputs={"inputs": "BTD"},
        masks={"mask": "T"},
        outputs=["BTU"],
        call=whole,
        step=step_by_step,
    )


ROWS = [
    row("DropoutCell", lambda: layers.DropoutCell(layers.LSTMCell(8), input=0.5)),
    row("ESNCell", partial(layers.ESNCell, 8, leaky=0.5, connectivity=0.5)),
    *(
        row(f"GRUCell-{reset}", partial(layers.GRUCell, 8, reset=reset, update=update))
        for reset, update in (("after", "keep"), ("before", "write"), ("none", "keep"))
    ),
    *(
        row(f"LSTMCell-{name}", partial(layers.LSTMCell, 8, output_activation=activation))
        for name, activation in (("tanh", "tanh"), ("linear", None))
    ),
    row("LayerNormLSTMCell", partial(layers.LayerNormLSTMCell, 8)),
    row("LayerNormSimpleRNNCell", partial(layers.LayerNormSimpleRNNCell, 8)),
    row("NASCell", partial(layers.NASCell, 6, projection=8, use_bias=True)),
    row("PeepholeLSTMCell", partial(layers.PeepholeLSTMCell, 8)),
    row(
        "RNN-stacked",
        lambda: layers.stacked([keras.layers.LSTMCell(8), layers.GRUCell(8)], residual=True),
    ),
    row("ResidualCell", lambda: layers.ResidualCell(layers.GRUCell(8))),
    row("ZoneoutCell", lambda: layers.ZoneoutCell(layers.LSTMCell(8), [0.1, 0.5])),
]
