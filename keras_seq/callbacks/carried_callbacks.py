"""The states of other callbacks in a checkpoint of `ExactCheckpoint`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_seq.callbacks.model_state import Arrays


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
