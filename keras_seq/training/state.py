"""All that an update reads and writes, out of a model and back into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.run import Shapes
from keras_seq.run.models import named_weights


def training_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Copies of weights, optimizer variables and seed generators, by name.

    Args:
        model: A compiled model whose optimizer is built.

    Returns:
        Arrays by name: `weight/<path>`, `optimizer/<number>/<path>`, `seed/<number>`.
    """
    return {name: backend.to_numpy(variable) for name, variable in _variables(model).items()}


def seed_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Copies of the seed generators alone, under the names of `training_arrays`."""
    return {name: backend.to_numpy(variable) for name, variable in _seeds(model).items()}


def training_shapes(model: keras.Model) -> Shapes:
    """Shape and dtype of each array that `training_arrays` gives."""
    return {
        name: (tuple(variable.shape), keras.backend.standardize_dtype(variable.dtype))
        for name, variable in _variables(model).items()
    }


def restore_arrays(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Puts back what `training_arrays` took: the next update is the one that came next then.

    Args:
        model: The same model, compiled in the same way.
        arrays: From `training_arrays`.
    """
    for name, variable in _variables(model).items():
        variable.assign(arrays[name])


def _variables(model: keras.Model) -> dict[str, Any]:
    weights = {f"weight/{name}": weight for name, weight in named_weights(model).items()}
    # States are taken between updates, where some of the optimizer's variables mean nothing.
    scratch = {id(variable) for variable in getattr(model.optimizer, "scratch", ())}
    optimizer = {
        f"optimizer/{i}/{variable.path}": variable
        for i, variable in enumerate(model.optimizer.variables)
        if id(variable) not in scratch
    }
    return weights | optimizer | _seeds(model)


def _seeds(model: keras.Model) -> dict[str, Any]:
    # What the model has besides its weights is the state of the seed generators.
    known = {id(weight) for weight in model.weights}
    others = [variable for variable in model.variables if id(variable) not in known]
    return {f"seed/{i}": variable for i, variable in enumerate(others)}
