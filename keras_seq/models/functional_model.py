"""Base class of the models of this package."""

import functools
import inspect
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import keras

from keras_seq.layers.internal.adaptable_layer import policy_with_quantization
from keras_seq.layers.internal.exact_dense import ExactDense


class FunctionalModel(keras.Model):
    """Functional Keras model whose config is its constructor's arguments. Abstract.

    The constructor of a subclass makes the layers, connects them and calls
    `super().__init__(inputs=..., outputs=..., **kwargs)`. `get_config` returns the arguments of
    that constructor and `from_config` calls it again. While the constructor runs,
    `self._arguments` is a namespace of its arguments, to pass on to functions that make layers.

    Each constructor takes, by `**kwargs`, the `name` of the model, and `dtype`, the dtype policy of
    its layers or None for the global policy.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _record_arguments(cls.__init__)  # type: ignore[method-assign]

    def get_config(self) -> dict[str, Any]:
        config = {name: _serialize(value) for name, value in vars(self._arguments).items()}
        dtype = keras.dtype_policies.serialize(self.dtype_policy)
        return {**config, "name": self.name, "dtype": dtype}

    def quantize(
        self, mode: Any = None, config: Any = None, filters: Any = None, **kwargs: Any
    ) -> None:
        """Quantizes the kernels of dense layers, as `quantize` of `keras.Model`.

        These are the kernels of attentions, feed-forward networks and projections. Recurrent
        cells, hard monotonic attention, convolutions, embeddings and backbones from KerasHub keep
        theirs. `filters` selects dense layers: a regular expression of their names, a
        list of these, or a function of a layer. A function that was compiled before, as in a
        predictor, keeps the old kernels.
        """
        quantized = []

        def selected(layer: Any) -> bool:
            # Keras warns about each layer that it cannot quantize, and a model that was loaded
            # with other quantized layers could not be saved again.
            if not isinstance(layer, ExactDense) or not _matches(layer, filters):
                return False
            quantized.append(layer)
            return True

        super().quantize(mode, config=config, filters=selected, **kwargs)
        for model in keras.tree.flatten([self, *vars(self._arguments).values()]):
            if isinstance(model, FunctionalModel):
                model.dtype_policy = policy_with_quantization(model.dtype_policy, quantized)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "FunctionalModel":
        return cls(**{name: _deserialize(value, custom_objects) for name, value in config.items()})


def _record_arguments(constructor: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(constructor)

    @functools.wraps(constructor)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        _, *named = bound.arguments.items()
        values = {
            name: value
            for name, value in named
            if signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD
        }
        # The namespace keeps Keras from tracking layers again. The graph already tracks them.
        arguments = SimpleNamespace(**{"dtype": kwargs.get("dtype"), **values})
        self._arguments = arguments
        constructor(self, *args, **kwargs)
        # The constructor of a base class may have recorded its own arguments.
        self._arguments = arguments
        # `keras.Model` has no `dtype` for functional models and takes the global policy.
        if arguments.dtype is not None:
            self.dtype_policy = arguments.dtype

    # Keras inspects constructors without following `__wrapped__`.
    construct.__signature__ = signature  # type: ignore[attr-defined]
    return construct


def _matches(layer: Any, filters: Any) -> bool:
    """Returns True if the `filters` of `keras.Model.quantize` select a layer."""
    if filters is None or callable(filters):
        return filters is None or filters(layer)
    patterns = [filters] if isinstance(filters, str) else filters
    return any(re.search(pattern, layer.name) for pattern in patterns)


def _serialize(value: Any) -> Any:
    if isinstance(value, keras.Layer):
        return keras.saving.serialize_keras_object(value)
    if isinstance(value, dict):
        return {name: _serialize(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_serialize(item) for item in value]
    return value


def _deserialize(value: Any, custom_objects: Any) -> Any:
    if isinstance(value, dict) and "class_name" in value:
        return keras.saving.deserialize_keras_object(value, custom_objects=custom_objects)
    return value
