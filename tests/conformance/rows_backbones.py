"""Rows of the contract for models with an encoder of KerasHub; see `conformance.table`."""

from functools import partial

from conformance import steps
from conformance.harness import Row
from conformance.rows_text import vectors

from keras_seq import models

BACKBONE = {
    "num_layers": 1,
    "units": 8,
    "feedforward_units": 16,
    "num_heads": 2,
    "positions": 64,
}
encoder = partial(models.BackboneTextEncoder, 20, **BACKBONE)


def seq2seq():
    return models.BackboneSeq2Seq(encoder(), 20, 1, units=8, feedforward_units=16, num_heads=2)


ROWS: list[Row] = [
    Row(
        "BackboneTextEncoder",
        make=encoder,
        inputs={"source": "BS ids"},
        outputs=["BU", "BSU"],
        call=vectors,
    ),
    *(
        Row(
            f"TextClassifier-{kind}",
            make=lambda kind=kind, pooling=pooling: models.TextClassifier(
                encoder(backbone=kind), 8, pooling
            ),
            inputs={"source": "BS ids"},
            outputs=["BU"],
            call=lambda model, arrays: model(arrays),
            float32_outputs=[0],
        )
        for kind, pooling in (("bert", "first"), ("distil_bert", "mean"))
    ),
    Row(
        "BackboneSeq2Seq",
        make=seq2seq,
        inputs={"source": "BS ids", "target": "BT ids"},
        outputs=["BTV"],
        call=lambda model, arrays: model(arrays),
        float32_outputs=[0],
        step=steps.model,
    ),
]
