"""Loads settings from a preset, a TOML file and overrides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_seq.plugins import import_plugins_of_environment
from keras_seq.settings.errors import SettingsError, show, suggest
from keras_seq.settings.hub_presets import PREFIX, hub_preset
from keras_seq.settings.presets import PRESETS
from keras_seq.settings.settings import Settings, refuse_unknown, walk_fields
from keras_seq.settings.tokenizer import SIDES
from keras_seq.settings.toml import MAX_FILE_BYTES, parse_toml, read_value


def load_settings(
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    overrides: Mapping[str, Any] | Iterable[str] | None = None,
    base: Mapping[str, Any] | None = None,
    adjustments: Mapping[str, Any] | None = None,
) -> Settings:
    """Loads settings in layers: defaults < `base` < preset < TOML file < overrides.

    A layer that changes `model.family` drops the model settings of lower layers.

    Args:
        preset: Name of a preset (`keras_seq.settings.PRESETS`). The name of the task may be left
            out: with the task `classify`, `bag` is `classify-bag`. Or `hub:`, followed by the name
            or directory of a KerasHub preset.
        file: Path of a TOML file with some of the settings.
        overrides: `{"training.max_steps": 100}` or `["training.max_steps=100"]`. Text is parsed as
            a TOML value unless the setting is a string; `none` unsets a setting.
        base: Nested values below the preset.
        adjustments: Nested values between the preset and the file.

    Returns:
        The checked `Settings`. In each section `model_fields_set` has the keys that the file and
        the overrides gave.

    Raises:
        SettingsError: If a key or preset is unknown (the message suggests the nearest one), a
            value is out of bounds, or the file cannot be read.
    """
    # Plugins have settings of their own.
    import_plugins_of_environment()
    refuse_unknown(base or {}, "")
    merged: dict[str, Any] = {}
    _merge(merged, base or {})
    items = [*_override_items(overrides)] if overrides else []
    values = read_settings_file(file) if file is not None else {}
    if preset is not None:
        task = {**merged, **values, **dict(items)}.get("task")
        _merge(merged, _preset_values(preset, task))
    by_user: dict[str, Any] = {}
    _merge(merged, adjustments or {})
    _merge(merged, values)
    _merge(by_user, values)
    without_overrides = dict(merged)
    for key, value in items:
        layer = _nest(key, value)
        _merge(merged, layer)
        _merge(by_user, layer)
    try:
        settings = Settings.from_dict(merged)
    except SettingsError:
        if file is not None:
            # If the error is in the file, raise an error that names the file.
            Settings.from_dict(without_overrides, where=f"{file}: ")
        raise
    for name in ("data", "tokenizer", "model", "training", "search", "score"):
        getattr(settings, name).model_fields_set.intersection_update(by_user.get(name, {}))
    for side in SIDES:
        keys = by_user.get("tokenizer", {}).get(side, {})
        getattr(settings.tokenizer, side).model_fields_set.intersection_update(keys)
    return settings


def read_settings_file(file: str | Path) -> dict[str, Any]:
    """Reads nested values from a TOML file and checks the keys; may raise SettingsError."""
    where = f"{file}: "
    try:
        with open(file, encoding="utf-8", newline="") as stream:
            text = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{where}{(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{where}not UTF-8 text") from None
    values = parse_toml(text, where)
    refuse_unknown(values, where)
    return values


def _preset_values(name: str, task: Any) -> Mapping[str, Any]:
    if name.startswith(PREFIX):
        return hub_preset(name.removeprefix(PREFIX), "translate" if task is None else str(task))
    # With the task `classify`, `bag` is short for `classify-bag`.
    if (full := f"{task}-{name}") in PRESETS:
        name = full
    if name not in PRESETS:
        raise SettingsError(
            f"unknown preset {show(name)}{suggest(name, PRESETS)} (presets: {', '.join(PRESETS)})"
        )
    return PRESETS[name]


def _override_items(overrides: Mapping[str, Any] | Iterable[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(overrides, Mapping):
        pairs = list(overrides.items())
    else:
        pairs = []
        for item in overrides:
            key, equals, value = item.partition("=")
            if not equals:
                raise SettingsError(f"received {show(item)}, expected key=value")
            pairs.append((key.strip(), value))
    fields: dict[str, Any] = {}
    for key, field in walk_fields():
        # Families share keys. A plugin does not change how the value of an own family is read.
        fields.setdefault(key, field)
    for key, value in pairs:
        if key not in fields:
            raise SettingsError(f"unknown setting {show(key)}{suggest(key, list(fields))}")
        yield key, read_value(value, fields[key]) if isinstance(value, str) else value


def _nest(key: str, value: Any) -> dict[str, Any]:
    name, _, rest = key.partition(".")
    return {name: _nest(rest, value) if rest else value}


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    """Merges `above` into `below`, in place."""
    for name, value in above.items():
        if not isinstance(value, Mapping):
            below[name] = value
            continue
        current = below.get(name)
        section = dict(current) if isinstance(current, Mapping) else {}
        if name == "model" and value.get("family", _family(section)) != _family(section):
            section = {}
        _merge(section, value)
        below[name] = section


def _family(section: Mapping[str, Any]) -> Any:
    return section.get("family", "transformer")
