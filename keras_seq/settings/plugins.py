"""Names in the settings that plugins add, and the plugins that settings need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keras_seq.plugins import Kind, added, plugin_of, plugins
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


def require_plugins(values: Mapping[str, Any], where: str = "") -> None:
    """Raises SettingsError if `values["plugins"]` has a plugin that was not imported."""
    stored = values.get("plugins") or []
    for name in stored if isinstance(stored, list) else []:
        if name not in plugins():
            raise SettingsError(
                f"{where}plugins: the plugin {show(name)} is needed: add --import {name}, or "
                "import it in Python first"
            )


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
