"""The variables of a compiled model as arrays, for `ExactCheckpoint`."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

Arrays = dict[str, np.ndarray]
Specs = dict[str, tuple[tuple[int, ...], str]]


def model_variables(model: keras.Model) -> dict[str, dict[str, Any]]:
    """The variables of the model and of its optimizer.

    They are named by number, because the names that Keras generates depend on the models that the
    process has created before.
    """
    return {
        "model": {f"{i:05d}": variable for i, variable in enumerate(model.variables)},
        "optimizer": {f"{i:05d}": variable for i, variable in enumerate(model.optimizer.variables)},
    }


def model_arrays(model: keras.Model) -> dict[str, Arrays]:
    """Copies of the variables of the model and of its optimizer."""
    # Gradients that an optimizer accumulates within an update may hold a NaN.
    scratch = {id(variable) for variable in getattr(model.optimizer, "scratch", ())}
    return {
        part: {
            name: _bytes(variable) if id(variable) in scratch else _array(variable)
            for name, variable in variables.items()
        }
        for part, variables in model_variables(model).items()
    }


def metric_variables(model: keras.Model) -> dict[str, Any]:
    """The variables of the metrics."""
    return {f"{i:05d}": variable for i, variable in enumerate(model.metrics_variables)}


def metric_arrays(model: keras.Model) -> Arrays:
    """Copies of the variables of the metrics, as bytes, because they may hold a NaN."""
    return {name: _bytes(variable) for name, variable in metric_variables(model).items()}


def assign_arrays(variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Assigns stored arrays, or their bytes, to variables."""
    for name, variable in variables.items():
        current = _array(variable)
        new = np.frombuffer(arrays[name].tobytes(), current.dtype).reshape(current.shape)
        variable.assign(new)


def specs_of(arrays: Mapping[str, np.ndarray]) -> Specs:
    """The shape and the dtype of each array."""
    return {name: (array.shape, array.dtype.name) for name, array in arrays.items()}


def _array(variable: Any) -> np.ndarray:
    return np.array(keras.ops.convert_to_numpy(variable.value))


def _bytes(variable: Any) -> np.ndarray:
    """The bytes of a variable. A checkpoint store accepts floats only if they are finite."""
    return np.frombuffer(_array(variable).tobytes(), np.uint8)
