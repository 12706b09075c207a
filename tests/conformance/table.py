"""One row for each public layer and model; every law runs over every row.

A new public layer needs a row here and a golden list of its parameters:
`PYTHONPATH=tests python -m conformance.golden`.
"""

from functools import partial

import pytest
from conformance import steps
from conformance.harness import Row

from keras_seq import layers, models

TRANSFORMER = {
    "source_vocabulary_size": 20,
    "target_vocabulary_size": 20,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "units": 8,
    "feedforward_units": 16,
    "num_heads": 2,
}
IDS = {"source": "BS ids", "target": "BT ids"}

ROWS = [
    Row(
        "FeedForward",
        make=partial(layers.FeedForward, units=16),
        inputs={"inputs": "BTD"},
        outputs=["BTD"],
    ),
    Row(
        "MultiHeadCrossAttention",
        make=partial(layers.MultiHeadCrossAttention, num_heads=2),
        inputs={"query": "BTD", "value": "BSE"},
        masks={"value_mask": "S"},
        outputs=["BTD", "BHTS"],
        call=lambda layer, arrays: layer(**arrays, return_weights=True),
        float32_outputs=[1],
        step=steps.cross_attention,
    ),
    Row(
        "MultiHeadSelfAttention",
        make=partial(layers.MultiHeadSelfAttention, num_heads=2),
        inputs={"inputs": "BTD"},
        masks={"inputs_mask": "T"},
        outputs=["BTD", "BHTT"],
        call=lambda layer, arrays: layer(**arrays, return_weights=True),
        float32_outputs=[1],
    ),
    Row(
        "MultiHeadSelfAttention-causal",
        make=partial(layers.MultiHeadSelfAttention, num_heads=2, causal=True),
        inputs={"inputs": "BTD"},
        masks={"inputs_mask": "T"},
        outputs=["BTD"],
        step=steps.self_attention,
    ),
    Row(
        "SinusoidalPosition",
        make=layers.SinusoidalPosition,
        inputs={"inputs": "BTD"},
        outputs=["BTD"],
        step=steps.position,
    ),
    Row(
        "TokenEmbedding",
        make=partial(layers.TokenEmbedding, vocabulary_size=20, units=8),
        inputs={"inputs": "BT ids"},
        outputs=["BTU"],
    ),
    Row(
        "TokenEmbedding-reverse",
        make=partial(layers.TokenEmbedding, vocabulary_size=20, units=8),
        inputs={"inputs": "BTU"},
        outputs=["BTV"],
        call=lambda layer, arrays: layer(**arrays, reverse=True),
        float32_outputs=[0],
    ),
    *(
        Row(
            f"TransformerEncoderBlock-{norm}",
            make=partial(
                layers.TransformerEncoderBlock, num_heads=2, feedforward_units=16, norm=norm
            ),
            inputs={"inputs": "BTD"},
            masks={"inputs_mask": "T"},
            outputs=["BTD"],
        )
        for norm in ("pre", "post")
    ),
    *(
        Row(
            f"TransformerDecoderBlock-{norm}",
            make=partial(
                layers.TransformerDecoderBlock, num_heads=2, feedforward_units=16, norm=norm
            ),
            inputs={"inputs": "BTD", "memory": "BSE"},
            masks={"inputs_mask": "T", "memory_mask": "S"},
            outputs=["BTD"],
            step=steps.decoder_block,
        )
        for norm in ("pre", "post")
    ),
    *(
        Row(
            f"Transformer-{name}",
            make=partial(models.Transformer, **TRANSFORMER, **variant),
            inputs=IDS,
            outputs=["BTV"],
            call=lambda model, arrays: model(arrays),
            float32_outputs=[0],
            step=steps.model,
        )
        for name, variant in (
            ("pre", {"share_embeddings": True}),
            ("post", {"norm": "post", "activation": "gelu"}),
        )
    ),
]

# Public functions, which have tests of their own.
NOT_LAYERS = {"ancestry_bias", "record_step"}

every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
every_row_with_steps = pytest.mark.parametrize(
    "row", [row for row in ROWS if row.step], ids=lambda row: row.name
)
