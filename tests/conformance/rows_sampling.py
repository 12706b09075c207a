"""Rows of the contract; see `conformance.table`."""

import keras
from conformance.harness import Row
from keras import ops

from keras_seq import layers


def decoder() -> layers.SampledDecoder:
    return layers.SampledDecoder(
        layers.AttentionCell(keras.layers.GRUCell(8), layers.BahdanauAttention(8)),
        layers.TrainingSampler(),
        embedding=keras.layers.Embedding(20, 8),
        output_layer=keras.layers.Dense(20),
    )


def step_by_step(layer, arrays):
    cell, value, mask = layer.cell, arrays["value"], arrays["value_mask"]
    states = cell.get_initial_state(batch_size=value.shape[0])
    embedded = layer.embedding(arrays["target"])
    logits = []
    for step in range(embedded.shape[1]):
        hidden, states, _ = cell(
            embedded[:, step], states, value, value_mask=mask, summary=arrays["summary"]
        )
        logits.append(layer.output_layer(hidden))
    return ops.stack(logits, axis=1)


ROWS: list[Row] = [
    Row(
        "SampledDecoder",
        make=decoder,
        inputs={"value": "BSE", "target": "BT ids", "summary": "BF"},
        masks={"value_mask": "S"},
        outputs=["BTV"],
        call=lambda layer, arrays: layer(**arrays)[0],
        float32_outputs=[0],
        step=step_by_step,
    ),
]
