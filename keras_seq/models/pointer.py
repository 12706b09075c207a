"""The output layer of models that copy source tokens."""

from types import SimpleNamespace
from typing import Any

from keras_seq.layers.attention.pointer_generator import PointerGenerator


def make_pointer(arguments: SimpleNamespace) -> Any:
    """Makes the `PointerGenerator` of a model with the argument `copy`, or None without it."""
    if not getattr(arguments, "copy", False):
        return None
    size = arguments.target_vocabulary_size
    return PointerGenerator(size, dtype=arguments.dtype, name="pointer")
