"""What plugins add to keras-seq, by kind and name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keras_seq.text import InputError

Kind = Literal["task", "family", "loss", "metric", "callback", "vocabulary"]


class PluginError(InputError):
    """Raised if a plugin is missing or cannot be imported, or if a name is taken."""


class Metric(NamedTuple):
    """A metric of a plugin.

    Attributes:
        function: Takes the answers and the references, two sequences of strings of equal length,
            and returns a number.
        label: The name of the metric in a sentence.
        lower_is_better: True if smaller values are better.
        digits: Number of printed decimals.
    """

    function: Callable[[Sequence[str], Sequence[str]], float]
    label: str
    lower_is_better: bool = False
    digits: int = 2


class Family(NamedTuple):
    """A family of models of a plugin.

    Attributes:
        section: Its settings, a subclass of `keras_seq.settings.ModelSection`.
        tasks: Names of the tasks.
        training: Values of the section `training` that its trainings start from.
    """

    section: Any
    tasks: tuple[str, ...]
    training: Mapping[str, Any]


class _Addition(NamedTuple):
    value: Any
    plugin: str
    # What defines the value, so that a cell of a notebook may run again.
    source: tuple[str, str]


_additions: dict[Kind, dict[str, _Addition]] = {}
_reserved: dict[Kind, set[str]] = {}
# Names of the plugins that are being imported, the innermost last.
importing: list[str] = []


def add(kind: Kind, name: str, value: Any, defined_by: Any) -> None:
    """Adds a named value.

    Args:
        kind: What the value is.
        name: The name, as in the settings.
        value: The value.
        defined_by: The class or function that the user wrote. If it is defined again, as in a
            notebook, the new one replaces the old one.

    Raises:
        PluginError: If the name is taken.
    """
    source = (defined_by.__module__, defined_by.__qualname__)
    earlier = _additions.setdefault(kind, {}).get(name)
    if name in _reserved.get(kind, ()):
        raise PluginError(f"the {kind} {name!r} exists already, in keras_seq: choose another name")
    if earlier is not None and earlier.source != source:
        raise PluginError(f"the {kind} {name!r} exists already, in the plugin {earlier.plugin}")
    plugin = importing[-1] if importing else _origin(defined_by.__module__)
    _additions[kind][name] = _Addition(value, plugin, source)


def remove(kind: Kind, name: str) -> None:
    """Removes an added name. Raises KeyError if no plugin added it."""
    del _additions.get(kind, {})[name]


def added(kind: Kind) -> dict[str, Any]:
    """Returns the added values of one kind, by name."""
    return {name: addition.value for name, addition in _additions.get(kind, {}).items()}


def plugin_of(kind: Kind, name: str) -> str | None:
    """Returns the name of the plugin that added a name; None for the names of keras_seq."""
    addition = _additions.get(kind, {}).get(name)
    return None if addition is None else addition.plugin


def plugins() -> set[str]:
    """Returns the names of all plugins that added something."""
    return {addition.plugin for kind in _additions.values() for addition in kind.values()}


def reserve(kind: Kind, names: Iterable[str]) -> None:
    """Declares names of keras_seq itself. Raises PluginError if a plugin has added one of them."""
    names = set(names)
    for name in sorted(names & _additions.get(kind, {}).keys()):
        plugin = plugin_of(kind, name)
        raise PluginError(f"{plugin}: the {kind} {name!r} exists already, in keras_seq")
    _reserved.setdefault(kind, set()).update(names)


def _origin(module: str) -> str:
    """Returns the file name of a script, or the name of a module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if module == "__main__":
        return Path(file).name if file else "the notebook that defines it"
    return module
