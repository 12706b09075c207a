"""The complete state of a model in training, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.run import Shapes
from keras_seq.run.models import named_weights


def training_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Copies the weights, the variables of the optimizer and the states of seed generators.

    The names are `weight/<path>`, `optimizer/<number>/<path>` and `seed/<number>`.
    """
    return {name: backend.to_numpy(variable) for name, variable in _variables(model).items()}


def seed_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Copies the states of the seed generators, with the names of `training_arrays`."""
    return {name: backend.to_numpy(variable) for name, variable in _seeds(model).items()}


def training_shapes(model: keras.Model) -> Shapes:
    """The shape and dtype of each array of `training_arrays`."""
    return {
        name: (tuple(variable.shape), keras.backend.standardize_dtype(variable.dtype))
        for name, variable in _variables(model).items()
    }


def restore_arrays(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Restores `training_arrays` to a model that is built and compiled in the same way."""
    for name, variable in _variables(model).items():
        variable.assign(arrays[name])


def _variables(model: keras.Model) -> dict[str, Any]:
    weights = {f"weight/{name}": weight for name, weight in named_weights(model).items()}
    # The state is copied between updates, when these variables have no meaning.
    scratch = {id(variable) for variable in getattr(model.optimizer, "scratch", ())}
    optimizer = {
        f"optimizer/{i}/{variable.path}": variable
        for i, variable in enumerate(model.optimizer.variables)
        if id(variable) not in scratch
    }
    return weights | optimizer | _seeds(model)


def _seeds(model: keras.Model) -> dict[str, Any]:
    # The only variables of a model that are not weights are the states of seed generators.
    weights = {id(weight) for weight in model.weights}
    seeds = [variable for variable in model.variables if id(variable) not in weights]
    return {f"seed/{i}": variable for i, variable in enumerate(seeds)}
