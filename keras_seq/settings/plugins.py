"""Names in the settings that plugins add, and the plugins that settings need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keras_seq.plugins import Kind, added, plugin_of
from keras_seq.plugins.registry import NOTEBOOK, is_known
from keras_seq.settings.errors import SettingsError, choices, show

# Where the settings name something that a plugin can add.
_KEYS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("task", ("task",)),
    ("family", ("model", "family")),
    ("loss", ("training", "loss")),
    ("metric", ("training", "monitor")),
    ("callback", ("training", "callbacks")),
    ("vocabulary", ("tokenizer", "kind")),
    ("vocabulary", ("tokenizer", "source", "kind")),
    ("vocabulary", ("tokenizer", "target", "kind")),
)
# The name of a plugin that is safe to print.
_PLUGIN = re.compile(r"[\w.-]{1,100}")


def require_plugins(values: Mapping[str, Any], where: str = "") -> None:
    """Raises SettingsError if nested values have a name whose plugin was not imported.

    `values["plugins"]` says which plugins to import. It can be from a stranger.
    """
    plugins = values.get("plugins")
    if not plugins:
        return
    if not isinstance(plugins, list) or not all(
        isinstance(name, str) and _PLUGIN.fullmatch(name) for name in plugins
    ):
        raise SettingsError(f"{where}plugins: received {show(plugins)}, expected names of plugins")
    for kind, name in _names(values):
        if is_known(kind, name):
            continue
        advice = "".join(f" --import {plugin}" for plugin in plugins if plugin != NOTEBOOK)
        if not advice:
            advice = (
                " its definition, which was in a notebook: run it first, or give --import FILE.py"
            )
        raise SettingsError(f"{where}the {kind} {show(name)} needs a plugin: add{advice}")


def needed_plugins(values: Mapping[str, Any]) -> list[str] | None:
    """Returns the plugins that added what nested values name, None without any."""
    needed = {plugin_of(kind, name) for kind, name in _names(values)}
    return sorted(filter(None, needed)) or None


def _names(values: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    for kind, path in _KEYS:
        value: Any = values
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
        # The values are checked later.
        names = value if isinstance(value, list) else [value]
        yield from ((kind, name) for name in names if isinstance(name, str))


def require_added(kind: Kind, key: str, names: Sequence[str]) -> None:
    """Raises ValueError for the first of `names`, values of the setting `key`, that is unknown."""
    known = added(kind)
    for name in names:
        if name not in known:
            expected = choices(known) if known else f"a {kind} of a plugin (--import)"
            raise ValueError(f"{key}: received {show(name)}, expected {expected}")
