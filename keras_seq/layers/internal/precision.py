"""Numbers as precise as they came, where half precision would not do."""

import keras
from keras import ops


def at_least_float32(tensor):
    """The tensor in float32, or in float64 as it was: half precision loses the small weights."""
    if keras.backend.standardize_dtype(tensor.dtype) == "float64":
        return tensor
    return ops.cast(tensor, "float32")
