"""Calls of models with nested inputs."""

from typing import Any


def call_model(model: Any, inputs: Any, **options: Any) -> Any:
    """Calls a model with nested dicts, whose keys may be in another order than the model's own.

    A functional model reads nested inputs by their position, and `keras.tree` sorts the keys of
    dicts on TensorFlow and JAX, but not on torch. `model` may also be a function.
    """
    return model(_in_order(getattr(model, "input", None), inputs), **options)


def _in_order(structure: Any, values: Any) -> Any:
    if not isinstance(structure, dict):
        return values
    return {key: _in_order(part, values[key]) for key, part in structure.items()}
