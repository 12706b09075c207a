"""Rows of the contract; see `conformance.table`."""

from functools import partial

from conformance import steps
from conformance.harness import Row

from keras_seq import layers

# Each position has other arguments, so that each argument is in at least one row.
POSITIONS = {
    "rotary": lambda: {
        "position": layers.RotaryPosition(),
        "key_size": 6,
        "value_size": 3,
        "window": 3,
    },
    "relative": lambda: {"position": layers.RelativePosition(2), "value_size": 3},
    "biases": lambda: {"position": layers.LinearBiases()},
}

ROWS: list[Row] = [
    Row(
        "FeedForward-gated",
        make=partial(layers.FeedForward, units=16, activation="swiglu"),
        inputs={"inputs": "BTD"},
        outputs=["BTD"],
    ),
    Row(
        "LearnedPosition",
        make=partial(layers.LearnedPosition, length=20),
        inputs={"inputs": "BTD"},
        outputs=["BTD"],
        step=steps.position,
    ),
    Row(
        "LinearBiases",
        make=layers.LinearBiases,
        inputs={"inputs": "BHTT"},
        outputs=["BHTT"],
    ),
    Row(
        "MultiHeadCrossAttention-sized",
        make=partial(layers.MultiHeadCrossAttention, num_heads=2, key_size=3, value_size=5),
        inputs={"query": "BTD", "value": "BSE"},
        masks={"value_mask": "S"},
        outputs=["BTD"],
        step=steps.cross_attention,
    ),
    Row(
        "MultiHeadCrossAttention-rotary",
        make=lambda: layers.MultiHeadCrossAttention(
            num_heads=2, key_size=4, position=layers.RotaryPosition()
        ),
        inputs={"query": "BTD", "value": "BSE"},
        masks={"value_mask": "S"},
        outputs=["BTD"],
        step=steps.cross_attention,
    ),
    *(
        Row(
            f"MultiHeadSelfAttention-{name}",
            make=lambda arguments=arguments: layers.MultiHeadSelfAttention(
                num_heads=2, causal=True, **arguments()
            ),
            inputs={"inputs": "BTD"},
            masks={"mask": "T"},
            outputs=["BTD"],
            step=steps.self_attention,
        )
        for name, arguments in POSITIONS.items()
    ),
    Row(
        "RelativePosition",
        make=partial(layers.RelativePosition, max_distance=2),
        inputs={"inputs": "BHTD"},
        outputs=["BHTT"],
    ),
    Row(
        "RotaryPosition",
        make=layers.RotaryPosition,
        inputs={"inputs": "BTD"},
        outputs=["BTD"],
        step=steps.position,
    ),
    Row(
        "TransformerDecoderBlock-rotary",
        make=lambda: layers.TransformerDecoderBlock(
            num_heads=2,
            feedforward_units=16,
            activation="geglu",
            position=layers.RotaryPosition(),
            cross_position=layers.RotaryPosition(max_wavelength=100.0),
        ),
        inputs={"inputs": "BTD", "memory": "BSE"},
        masks={"inputs_mask": "T", "memory_mask": "S"},
        outputs=["BTD"],
        step=steps.decoder_block,
    ),
]
