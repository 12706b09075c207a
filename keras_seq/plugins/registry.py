"""The names that plugins add to keras-seq, by kind."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from keras_seq.text import InputError

Kind = Literal["task", "family", "loss", "metric", "callback", "vocabulary"]
Value = TypeVar("Value")

# The plugin of names that were registered in a notebook or at the prompt.
NOTEBOOK = "__main__"
_NAME = re.compile(r"[A-Za-z][\w-]{0,99}")


class PluginError(InputError):
    """Raised if a plugin is missing, cannot be imported or fails, or if a name is taken."""


class Family(NamedTuple):
    """A family of models of a plugin.

    Attributes:
        section: Its settings, a subclass of `keras_seq.settings.ModelSection`.
        tasks: Names of the tasks that can use the family.
        training: Values that replace defaults of the settings section `training`.
    """

    section: Any
    tasks: tuple[str, ...]
    training: Mapping[str, Any]


class Metric(NamedTuple):
    """A metric of a plugin.

    Attributes:
        function: Takes the answers and the references, two lists of strings of equal length, and
            returns a number.
        label: How printed messages name the metric.
        lower_is_better: True if smaller values are better.
        digits: Number of printed decimals.
    """

    function: Callable[[Sequence[str], Sequence[str]], float]
    label: str
    lower_is_better: bool = False
    digits: int = 2


class _Addition(NamedTuple):
    value: Any
    plugin: str
    # Module and qualified name of the definition. If a cell of a notebook runs again, the new
    # definition replaces the old one.
    source: tuple[str, str]


_additions: dict[Kind, dict[str, _Addition]] = {}
_reserved: dict[Kind, set[str]] = {}
# Names of the plugins that are being imported, the innermost last.
importing: list[str] = []


def add(kind: Kind, name: str, value: Any, defined_by: Any) -> None:
    """Adds a named value.

    Args:
        kind: The kind of the value.
        name: The name, as in the settings.
        value: The value.
        defined_by: The class or function that the user wrote. If it is defined again, as in a
            notebook, the new one replaces the old one.

    Raises:
        PluginError: If the name is taken or cannot be a name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PluginError(
            f"the {kind} {str(name)[:60]!r}: expected a name of letters, digits, _ and -, as in "
            f"register_{kind}('my-{kind}')"
        )
    if name in _reserved.get(kind, ()) or name in ("none", "auto"):
        raise PluginError(f"the {kind} {name!r} exists already, in keras_seq: choose another name")
    source = (defined_by.__module__, defined_by.__qualname__)
    earlier = _additions.setdefault(kind, {}).get(name)
    if earlier is not None and earlier.source != source:
        raise PluginError(f"the {kind} {name!r} exists already, in the plugin {earlier.plugin}")
    plugin = importing[-1] if importing else _origin(defined_by.__module__)
    _additions[kind][name] = _Addition(value, plugin, source)


def added(kind: Kind) -> dict[str, Any]:
    """Returns the added values of one kind, by name."""
    return {name: addition.value for name, addition in _additions.get(kind, {}).items()}


def plugin_of(kind: Kind, name: str) -> str | None:
    """Returns the name of the plugin that added a name; None for the names of keras_seq."""
    addition = _additions.get(kind, {}).get(name)
    return None if addition is None else addition.plugin


def is_known(kind: Kind, name: str) -> bool:
    """Tests if keras_seq or an imported plugin has a name."""
    return name in _reserved.get(kind, ()) or name in _additions.get(kind, {})


def reserve(kind: Kind, names: Iterable[str]) -> None:
    """Declares names of keras_seq itself. Raises PluginError if a plugin has added one of them."""
    names = set(names)
    for name in sorted(names & _additions.get(kind, {}).keys()):
        plugin = plugin_of(kind, name)
        raise PluginError(f"plugin {plugin}: the {kind} {name!r} exists already, in keras_seq")
    _reserved.setdefault(kind, set()).update(names)


class WithPlugins(Mapping[str, Value]):
    """The values of keras_seq and of plugins, by name.

    Args:
        kind: The kind of the values.
        own: The values of keras_seq.
        convert: Makes a value of the name and the value that a plugin added.
    """

    def __init__(
        self, kind: Kind, own: Mapping[str, Value], convert: Callable[[str, Any], Value]
    ) -> None:
        self._kind: Kind = kind
        self._own = own
        self._convert = convert

    def __getitem__(self, name: str) -> Value:
        return self._own[name] if name in self._own else self._convert(name, self._added[name])

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._added))

    def __len__(self) -> int:
        return len(self._own) + len(self._added)

    @property
    def _added(self) -> dict[str, Any]:
        return added(self._kind)


def call(kind: Kind, name: str, function: Callable[[], Value]) -> Value:
    """Calls code of a plugin. Raises PluginError with one line if the code fails."""
    try:
        return function()
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(
            f"plugin {plugin_of(kind, name)}: the {kind} {name!r}: {summary(error)}"
        ) from error


def summary(error: BaseException) -> str:
    """Returns type and message of an error on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _origin(module: str) -> str:
    """Returns the file name of a script, or the name of a module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).name if module == NOTEBOOK and file else module
