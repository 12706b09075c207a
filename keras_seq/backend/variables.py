"""Values of variables, also in the middle of `fit`."""

from typing import Any

import keras
import numpy as np

from keras_seq.backend.device import name


def to_numpy(value: Any) -> np.ndarray:
    """A copy of the value of a tensor or of a Keras variable.

    If several hosts have parts of it, all of them must ask.
    """
    # A copy on several devices is a tensor only then.
    value = keras.ops.convert_to_tensor(value)
    if name() == "jax" and not (value.is_fully_addressable or value.is_fully_replicated):
        from jax.experimental import multihost_utils

        value = multihost_utils.process_allgather(value, tiled=True)
    return np.array(keras.ops.convert_to_numpy(value))


def sync_variables(model: Any) -> None:
    """Writes what a running `fit` holds back into the model's variables (JAX)."""
    if name() == "jax":
        model.jax_state_sync()
