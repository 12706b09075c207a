"""The content of a checkpoint of `ExactCheckpoint`: variables, and states of other callbacks."""

from collections.abc import Mapping, Sequence
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


class CarriedCallbacks:
    """Callbacks whose states are saved and restored with a checkpoint.

    Restored states of callbacks that are not added are kept and saved again, because the next
    script may add these callbacks.
    """

    def __init__(self) -> None:
        self._callbacks: dict[str, tuple[Any, Sequence[str] | None]] = {}
        self._states: dict[str, Any] = {}
        self._arrays: dict[str, Arrays] = {}

    def add(self, name: str, callback: Any, attributes: Sequence[str] | None) -> None:
        if attributes is None and not (hasattr(callback, "state") and hasattr(callback, "restore")):
            raise TypeError(
                f"{type(callback).__name__} has no `state` and `restore`: name its `attributes`."
            )
        self._callbacks[name] = (callback, attributes)
        self._restore(name)

    @property
    def states(self) -> dict[str, Any]:
        return self._states | {
            name: callback.state
            if attributes is None
            else {key: np.asarray(getattr(callback, key)).item() for key in attributes}
            for name, (callback, attributes) in self._callbacks.items()
        }

    @property
    def arrays(self) -> dict[str, Arrays]:
        return self._arrays | {
            name: callback.arrays
            for name, (callback, attributes) in self._callbacks.items()
            if attributes is None and hasattr(callback, "arrays")
        }

    def restore(self, states: Mapping[str, Any], arrays: Mapping[str, Arrays]) -> None:
        self._states, self._arrays = dict(states), dict(arrays)
        for name in self._callbacks:
            self._restore(name)

    def restore_attributes(self) -> None:
        """Restores the callbacks of Keras, which reset their attributes at the start of `fit`."""
        for name, (_, attributes) in self._callbacks.items():
            if attributes is not None:
                self._restore(name)

    def _restore(self, name: str) -> None:
        callback, attributes = self._callbacks[name]
        if name not in self._states:
            return
        if attributes is None:
            arrays = [self._arrays.pop(name)] if name in self._arrays else []
            callback.restore(self._states[name], *arrays)
        for key in attributes or ():
            setattr(callback, key, self._states[name][key])
