"""Base class of most layers."""

import inspect
from typing import Any, Self

import keras


class ConfiguredLayer(keras.layers.Layer):
    """Base class of layers that propagate their input mask and build their config from arguments.

    A subclass stores each constructor argument in an attribute of the same name and defines no
    `get_config`. The automatic config of Keras covers plain values only: it fails for a layer, an
    initializer, an activation function or a `dtype` given as a `keras.DTypePolicy`.
    """

    def get_config(self) -> dict[str, Any]:
        names = [name for name in _argument_names(type(self)) if hasattr(self, name)]
        arguments = {name: serialize_argument(getattr(self, name)) for name in names}
        return {**arguments, **super().get_config()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        objects = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in _argument_names(cls)
            if isinstance(config.get(name), dict)
        }
        return super().from_config({**config, **objects})

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask


def _argument_names(layer_class: type) -> list[str]:
    """Names of the constructor arguments of a layer class and its bases."""
    bases = layer_class.__mro__[: layer_class.__mro__.index(ConfiguredLayer)]
    constructors = [vars(base)["__init__"] for base in bases if "__init__" in vars(base)]
    return [
        name
        for constructor in constructors
        for name, parameter in list(inspect.signature(constructor).parameters.items())[1:]
        if parameter.kind is not parameter.VAR_KEYWORD
    ]


def serialize_argument(value: Any) -> Any:
    """Returns the config of a layer, function or other Keras object. Returns plain values as is."""
    if inspect.isfunction(value):
        return keras.activations.serialize(value)  # only the name of a Keras function
    serialized = keras.saving.serialize_keras_object(value)
    if isinstance(value, keras.layers.Layer):
        # The outer layer builds its inner layers with shapes that Keras does not know.
        return {name: part for name, part in serialized.items() if name != "build_config"}
    return serialized
