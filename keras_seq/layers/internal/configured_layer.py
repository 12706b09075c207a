"""A layer whose config is read from the arguments of its constructor."""

import inspect
from typing import Any

import keras


class ConfiguredLayer(keras.layers.Layer):
    """Abstract layer whose `get_config` returns every constructor argument, serialized.

    A subclass stores each argument in an attribute of the same name and defines no `get_config`.
    The automatic config of Keras covers plain values only: it fails for an initializer, an
    activation function or a `keras.DTypePolicy` given as an object.
    """

    def get_config(self) -> dict[str, Any]:
        constructors = [vars(base).get("__init__") for base in type(self).__mro__]
        names = [
            name
            for constructor in constructors[: type(self).__mro__.index(ConfiguredLayer)]
            if constructor is not None
            for name, parameter in inspect.signature(constructor).parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD and hasattr(self, name)
        ]
        arguments = {name: _serialized(getattr(self, name)) for name in names}
        return {**arguments, **super().get_config()}


def _serialized(value: Any) -> Any:
    if inspect.isfunction(value):
        return keras.activations.serialize(value)  # the bare name of a function of Keras
    return keras.saving.serialize_keras_object(value)
