"""Symbolic inputs of models and of their decoder steps."""

from collections.abc import Mapping
from typing import Any

import keras

# Shape letters: B batch, T steps, K beam.


def token_input(name: str) -> Any:
    """Symbolic int32 ids `(B, T)`."""
    return keras.Input((None,), dtype="int32", name=name)


def step_inputs(
    memory: Mapping[str, Any], beam: Mapping[str, Any], shared: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Symbolic inputs of a `decoder_step`.

    Args:
        memory: Dict of the symbolic outputs of the encoder.
        beam: Dict of symbolic states `(B, K, ...)`, which a search reorders.
        shared: Dict of symbolic states `(B, ...)`, which a search does not reorder.

    Returns:
        Dict of `token` `(B, K)`, `position` `()`, `state` (a dict of `beam` and `shared`) and
        `memory`.
    """
    return {
        "token": token_input("token"),
        "position": keras.Input(batch_shape=(), dtype="int32", name="position"),
        "state": {"beam": dict(beam), "shared": dict(shared or {})},
        "memory": {
            name: keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=f"memory_{name}")
            for name, tensor in memory.items()
        },
    }
