"""Members of an ensemble of models that are trained together."""

from collections.abc import Callable, Sequence
from typing import Any

import keras


def make_members(make: Callable[[str], Any], count: int) -> list[Any]:
    """Makes `count` models whose weights have different paths.

    `make` is a function from a name to a new model of that name.
    """
    members = []
    for index in range(count):
        with keras.name_scope(f"member_{index}"):
            members.append(make(f"member_{index}"))
    return members


def members_from_configs(configs: Sequence[Any], custom_objects: Any = None) -> list[Any]:
    """Makes the members of an ensemble from their serialized configs."""
    members = []
    for index, config in enumerate(configs):
        with keras.name_scope(f"member_{index}"):
            members.append(keras.saving.deserialize_keras_object(config, custom_objects))
    return members
