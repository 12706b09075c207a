"""Bidirectional recurrent encoders in functional models."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

# Shape letters: B batch, S steps, U units of a direction.

RECURRENT_LAYERS = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}
NUM_STATES = {"gru": 1, "lstm": 2}


def make_bidirectional(cell: str, units: int, dtype: Any, name: str) -> Any:
    """Bidirectional layer that returns its outputs and its last states."""
    # Keras numbers unnamed layers, so weight paths would differ between processes.
    inner = RECURRENT_LAYERS[cell](
        units, return_sequences=True, return_state=True, dtype=dtype, name=cell
    )
    layer = keras.layers.Bidirectional(inner, dtype=dtype, name=name)
    # Keras copies `inner` and, while loading a model, identifies objects by `id`. Keeping `inner`
    # alive prevents another layer from getting its `id`. The namespace hides the attribute from
    # Keras.
    layer.template = SimpleNamespace(layer=inner)
    return layer


def make_bidirectional_layers(cell: str, num_layers: int, units: int, dtype: Any) -> list[Any]:
    """Makes the bidirectional layers of an encoder, with `units` in each direction."""
    return [make_bidirectional(cell, units, dtype, f"encoder_{i}") for i in range(num_layers)]


def join_directions(states: Sequence[Any]) -> list[Any]:
    """Concatenates forward and backward states. All forward states come first in `states`."""
    half = len(states) // 2
    return [
        ops.concatenate([forward, backward], axis=-1)
        for forward, backward in zip(states[:half], states[half:], strict=True)
    ]


def encode_bidirectional(
    layers: Sequence[Any], dropouts: Sequence[Any], x: Any, mask: Any
) -> tuple[Any, list[list[Any]]]:
    """Stacks layers from `make_bidirectional_layers`, with residuals from the second layer on.

    `dropouts` apply to the inputs of all layers but the first. Returns outputs `(B, S, 2U)`, and
    for each layer its last states `(B, 2U)`, with both directions concatenated.
    """
    last_states = []
    for i, layer in enumerate(layers):
        inputs = dropouts[i - 1](x) if i else x
        outputs, *states = layer(inputs, mask=mask)
        last_states.append(join_directions(states))
        x = x + outputs if i else outputs
    return x, last_states
