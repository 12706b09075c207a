"""Computation in at least single precision."""

from typing import Any

import keras
from keras import ops


def at_least_float32(tensor: Any) -> Any:
    """Casts half precision to float32 and leaves float64 as it is."""
    if keras.backend.standardize_dtype(tensor.dtype) == "float64":
        return tensor
    return ops.cast(tensor, "float32")
