"""Calls of models with nested inputs."""

from typing import Any

from keras_seq.backend.device import name


def call_model(model: Any, inputs: Any, **options: Any) -> Any:
    """Calls a model with nested dicts, whose keys may be in another order than the model's own.

    A functional model reads nested inputs by their position, and `keras.tree` sorts the keys of
    dicts on TensorFlow and JAX, but not on torch. `model` may also be a function.
    """
    if name() == "torch":
        inputs = _in_order(getattr(model, "input", None), inputs)
    return model(inputs, **options)


def _in_order(structure: Any, values: Any) -> Any:
    if not isinstance(structure, dict) or not isinstance(values, dict):
        return values
    return {key: _in_order(part, values[key]) for key, part in structure.items() if key in values}
