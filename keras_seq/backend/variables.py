"""Values of variables, also during `fit`."""

from typing import Any

import keras
import numpy as np

from keras_seq.backend.device import name


def to_numpy(value: Any) -> np.ndarray:
    """Copies the value of a tensor or Keras variable to a numpy array.

    If the value is distributed over several hosts, all of them must call this function.
    """
    # Converts a variable with copies on several devices to a single tensor.
    value = keras.ops.convert_to_tensor(value)
    if name() == "jax" and not (value.is_fully_addressable or value.is_fully_replicated):
        from jax.experimental import multihost_utils

        value = multihost_utils.process_allgather(value, tiled=True)
    return np.array(keras.ops.convert_to_numpy(value))


def sync_variables(model: Any) -> None:
    """Copies the state of a running `fit` to the model's variables. Only JAX needs this."""
    if name() == "jax":
        model.jax_state_sync()
