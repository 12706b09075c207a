"""`Settings`: all settings of a run, checked together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import tomli_w
from pydantic import (
    BeforeValidator,
    Field,
    InstanceOf,
    SerializeAsAny,
    ValidationError,
    model_validator,
)

from keras_seq.plugins import import_plugins_of_environment
from keras_seq.settings.combinations import check_combinations
from keras_seq.settings.data import DataSettings
from keras_seq.settings.errors import SettingsError, choices, expectation, show, suggest
from keras_seq.settings.families import FAMILIES, families_of, model_section
from keras_seq.settings.plugins import needed_plugins, require_plugins
from keras_seq.settings.score import ScoreSettings
from keras_seq.settings.search import NOT_OF_METHOD, SearchSettings
from keras_seq.settings.section import ModelSection, Section
from keras_seq.settings.sequence_models import TransformerSettings
from keras_seq.settings.tasks import TASKS
from keras_seq.settings.tokenizer import SIDES, TokenizerSettings
from keras_seq.settings.toml import parse_toml
from keras_seq.settings.training import TrainingSettings

# Paths of the tables within sections.
_NESTED = [["tokenizer", side] for side in SIDES]


class Settings(Section):
    """All settings of a run.

    Settings are frozen. `load_settings` and `Settings.from_dict` create and check settings.

    Example:

    >>> from keras_seq.settings import load_settings
    >>> settings = load_settings(preset="transformer-tiny", overrides=["training.max_steps=100"])
    >>> settings.model.units, settings.training.max_steps
    (128, 100)
    """

    task: str = Field(
        default="translate",
        description="What is learned: from pairs of lines, from lines, or from labeled lines.",
    )
    seed: int = Field(default=1, ge=0, le=2**31 - 1, description="Random seed.")
    data: DataSettings = DataSettings()
    tokenizer: TokenizerSettings = TokenizerSettings()
    model: Annotated[SerializeAsAny[InstanceOf[ModelSection]], BeforeValidator(model_section)] = (
        TransformerSettings()
    )
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()
    score: ScoreSettings = ScoreSettings()
    plugins: list[str] | None = Field(
        default=None, description="Plugins that the settings need; a training writes this list."
    )

    @model_validator(mode="before")
    @classmethod
    def _default_family(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        model, task = values.get("model", {}), values.get("task", "translate")
        if not isinstance(task, str) or task not in TASKS:
            raise ValueError(f"task: received {show(task)}, expected {choices(TASKS)}")
        if isinstance(model, dict) and "family" not in model:
            values = {**values, "model": {"family": default_family(task, model), **model}}
        return {**values, "plugins": needed_plugins(values)}

    @model_validator(mode="after")
    def _is_possible(self) -> Settings:
        check_combinations(self)
        return self

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, where: str = "") -> Settings:
        """Checks nested values. Errors have one line, prefixed by `where`."""
        import_plugins_of_environment()
        refuse_unknown(values, where)
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise SettingsError(where + _explain(error, _family(values))) from None

    @classmethod
    def from_toml(cls, text: str, *, where: str = "") -> Settings:
        """Checks settings in TOML, as `to_toml` returns them."""
        return cls.from_dict(parse_toml(text, where), where=where)

    def with_search(self, search: Mapping[str, Any]) -> Settings:
        """Returns settings with different values in the section `search`, passed by name.

        If the method changes, values that the new method does not take are reset. Raises
        SettingsError if a name is unknown, a value is out of bounds, or values conflict.
        """
        if not search:
            return self
        base = self.to_dict()
        method = search.get("method", self.search.method)
        if method != self.search.method:
            for name in NOT_OF_METHOD.get(method, ()):
                base["search"].pop(name)
        return self.from_dict({**base, "search": {**base["search"], **search}})

    def to_dict(self) -> dict[str, Any]:
        """Returns all values that are not None, nested."""
        values = self.model_dump(exclude_none=True, exclude={"plugins"})
        plugins = needed_plugins(values)
        return values if plugins is None else {"plugins": plugins, **values}

    def to_toml(self) -> str:
        """Returns all values that are not None, as TOML text."""
        return tomli_w.dumps(self.to_dict())


def setting_keys() -> list[str]:
    """Returns all dotted keys, in the order of the sections."""
    return list(dict.fromkeys(key for key, _ in walk_fields()))


def walk_fields() -> Iterator[tuple[str, Any]]:
    """Yields dotted keys with their fields. Keys that model families share are repeated."""
    return _walk("", Settings)


def _walk(prefix: str, section: type[Section]) -> Iterator[tuple[str, Any]]:
    nested: list[tuple[str, type[Section]]] = []
    for name, field in section.model_fields.items():
        kind = field.annotation
        if kind is ModelSection:
            nested += [(name, family) for family in FAMILIES.values()]
        elif isinstance(kind, type) and issubclass(kind, Section):
            nested.append((name, kind))
        else:
            yield prefix + name, field
    for name, inner in nested:
        yield from _walk(f"{prefix}{name}.", inner)


def refuse_unknown(
    values: Mapping[str, Any], where: str, prefix: str = "", known: Sequence[str] | None = None
) -> None:
    """Raises SettingsError for the first unknown key of nested values."""
    if not prefix:
        # First, because the settings of a missing plugin are unknown.
        require_plugins(values, where)
    known = known or setting_keys()
    for name, value in values.items():
        dotted = f"{prefix}{name}"
        if dotted in known:
            continue
        if not any(key.startswith(f"{dotted}.") for key in known):
            raise SettingsError(f"{where}unknown setting {show(dotted)}{suggest(dotted, known)}")
        if not isinstance(value, Mapping):
            raise SettingsError(f"{where}{dotted}: received {show(value)}, expected a table")
        refuse_unknown(value, where, f"{dotted}.", known)


def _explain(error: ValidationError, family: str) -> str:
    """Explains the first error of pydantic in one line, for a model of `family` (or "")."""
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"]]
    # Pydantic appends type names to the location. Keep only section and key.
    depth = 3 if location[:2] in _NESTED else 2
    key = ".".join(location[:depth])
    if first["type"] == "extra_forbidden":
        return f"{key}: not a setting of model.family {family!r}{_families_with(location, family)}"
    if first["type"] == "value_error":
        return f"{key}.{first['ctx']['error']}".removeprefix(".")
    fields = {
        f"model.{name}": field
        for name, field in (FAMILIES[family].model_fields if family else {}).items()
    }
    field = fields.get(key) or dict(walk_fields()).get(key)
    expected = expectation(field) if field is not None else first["msg"]
    return f"{key}: received {show(first['input'])}, expected {expected}"


def _families_with(location: Sequence[str], family: str) -> str:
    """Names the families of the same task that have a setting of the section `model`."""
    others = [
        other
        for task in TASKS.values()
        if family in families_of(task) and location[0] == "model"
        for other in families_of(task)
        if location[1] in FAMILIES[other].model_fields
    ]
    return f", only of {' and '.join(map(repr, others))}" if others else ""


def default_family(task: str, model: Iterable[str]) -> str:
    """Returns the first family of a task that has all given settings of the section `model`.

    If there is none, returns the first family, so that the error names what it lacks.
    """
    families, keys = families_of(TASKS[task]), set(model)
    return next(
        (name for name in families if keys <= FAMILIES[name].model_fields.keys()), families[0]
    )


def _family(values: Mapping[str, Any]) -> str:
    """Returns the family of models in nested values; "" if it is unknown."""
    model = values.get("model")
    family = model.get("family") if isinstance(model, Mapping) else None
    task = values.get("task", "translate")
    if family is None and isinstance(task, str) and task in TASKS:
        family = default_family(task, model if isinstance(model, Mapping) else {})
    return family if isinstance(family, str) and family in FAMILIES else ""
