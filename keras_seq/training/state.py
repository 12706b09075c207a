"""The complete state of a model in training as arrays, and its averaged weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.run import Shapes
from keras_seq.run.models import named_weights
from keras_seq.run.weight_names import has_numbered_names


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
    # These variables have no meaning between two updates, which is when the state is copied.
    scratch = {id(variable) for variable in getattr(model.optimizer, "scratch", ())}
    # The paths of its variables contain those of the weights.
    numbered = has_numbered_names(model)
    optimizer = {
        f"optimizer/{i}" if numbered else f"optimizer/{i}/{variable.path}": variable
        for i, variable in enumerate(model.optimizer.variables)
        if id(variable) not in scratch
    }
    return weights | optimizer | _seeds(model)


def _seeds(model: keras.Model) -> dict[str, Any]:
    # The only variables of a model that are not weights are the states of seed generators.
    weights = {id(weight) for weight in model.weights}
    seeds = [variable for variable in model.variables if id(variable) not in weights]
    return {f"seed/{i}": variable for i, variable in enumerate(seeds)}


@contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """Context in which the weights of a model are the moving average of its optimizer.

    Without an average (no `use_ema`, or no update so far), the weights do not change. On exit, the
    weights are restored exactly.

    Example:

    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile(keras.optimizers.Adam(use_ema=True), "mse")
    >>> model.optimizer.build(model.trainable_variables)
    >>> with averaged_weights(model):
    ...     loss = model.evaluate(keras.ops.ones((1, 2)), keras.ops.ones((1, 1)), verbose=0)
    """
    optimizer = model.optimizer
    # Before the first update, the averages are zeros.
    if not optimizer.use_ema or not int(backend.to_numpy(optimizer.iterations)):
        yield
        return
    # On TensorFlow, `SwapEMAWeights` of Keras swaps values by adding and subtracting. The rounding
    # errors would change the weights with each validation.
    variables = model.trainable_variables
    weights = [backend.to_numpy(variable) for variable in variables]
    optimizer.finalize_variable_values(variables)
    try:
        yield
    finally:
        for variable, weight in zip(variables, weights, strict=True):
            variable.assign(weight)
