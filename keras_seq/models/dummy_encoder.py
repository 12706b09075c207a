"""Encoder of models that have no source."""

from typing import Any

import keras
from keras import ops


def dummy_encoder(source: Any) -> Any:
    """Functional model from ids `(B, S)` to a memory that holds only the `mask` `(B, S)`."""
    return keras.Model(source, {"mask": ops.not_equal(source, 0)}, name="encoder")
