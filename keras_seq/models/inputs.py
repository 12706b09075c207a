"""Symbolic inputs of models and of their decoder steps."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

# Shape letters: B batch, T steps, K beam.


def token_input(name: str) -> Any:
    """Makes symbolic int32 ids `(B, T)`."""
    return keras.Input((None,), dtype="int32", name=name)


def label_inputs(source: Any, begins: Any = None, characters: Any = None) -> dict[str, Any]:
    """Makes the inputs of a classifier or tagger from int32 tensors.

    `begins` `(B, S)` is not 0 where a word begins.
    """
    inputs = {"source": source}
    if begins is not None:
        inputs["begins"] = ops.not_equal(begins, 0)
    if characters is not None:
        inputs["characters"] = characters
    return inputs


def step_inputs(
    memory: Mapping[str, Any], beam: Mapping[str, Any], shared: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Makes the inputs of `decoder_step`: `token` `(B, K)`, `position` `()`, `state` and `memory`.

    The state is a dict of `beam` `(B, K, ...)`, which a search reorders, and of `shared` `(B,
    ...)`, which it does not reorder.
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
