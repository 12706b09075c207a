"""The settings that are searched, and their ranges or choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_seq.settings import FAMILIES, Settings, SettingsError, load_settings, setting_keys
from keras_seq.settings.errors import value_types
from keras_seq.settings.settings import walk_fields

Value = float | int | str
# The name by which presets are searched, which set several settings together.
PRESET = "preset"
# A range whose ends differ by this factor is searched on a logarithmic scale.
_LOG_RATIO = 10
_DIGITS = 3
_SECTIONS = ("model", "training", "tokenizer")
_OTHERS = ("data.concatenation", "data.class_weights")
# Settings that decide when a training ends, how it is scored, or what it begins with.
_NOT_SEARCHED = (
    *("model.family", "training.max_steps", "training.max_minutes", "training.max_epochs"),
    *("training.monitor", "training.validate_every", "training.checkpoint_every"),
    *("training.keep_checkpoints", "training.sample_count", "training.validation_beam_size"),
    *("training.from_run", "training.teacher", "training.from_hub", "training.callbacks"),
)
# The width of a model, by the first of these names that its family has.
_WIDTHS = ("units", "decoder_units", "hidden_units", "filters")


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, on a logarithmic scale if they differ by a factor of 10."""

    name: str
    low: float
    high: float
    is_integer: bool

    @property
    def is_logarithmic(self) -> bool:
        return self.low > 0 and self.high / self.low >= _LOG_RATIO

    @property
    def size(self) -> float:
        """Number of values."""
        return self.high - self.low + 1 if self.is_integer else float("inf")

    @property
    def ends(self) -> tuple[Value, ...]:
        """Values that must be valid."""
        return self.round(self.low), self.round(self.high)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high

    def round(self, value: float) -> Value:
        """Returns a value with few digits, within the range."""
        if self.is_integer:
            return round(value)
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)

    def __str__(self) -> str:
        scale = " (log)" if self.is_logarithmic else ""
        return f"{self.name} {self.round(self.low)}..{self.round(self.high)}{scale}"


@dataclass(frozen=True)
class Choice:
    """Some values of a setting, as text."""

    name: str
    values: tuple[str, ...]

    @property
    def size(self) -> float:
        """Number of values."""
        return len(self.values)

    @property
    def ends(self) -> tuple[Value, ...]:
        """Values that must be valid."""
        return self.values

    def __contains__(self, value: object) -> bool:
        return _text(value) in self.values

    def __str__(self) -> str:
        return f"{self.name} {','.join(self.values)}"


Dimension = Range | Choice
Values = Mapping[str, Value]


def parse_search(searches: Iterable[str]) -> list[Dimension]:
    """Reads `NAME=LOW..HIGH` and `NAME=A,B,C`. Raises SettingsError if one is invalid.

    Example:

    >>> [str(each) for each in parse_search(["training.learning_rate=1e-4..1e-2"])]
    ['training.learning_rate 0.0001..0.01 (log)']
    """
    dimensions = []
    for text in searches:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not values:
            raise SettingsError(
                f"--search: received {text!r}, expected NAME=LOW..HIGH or NAME=A,B,C"
            )
        _check_name(name)
        is_range = ".." in values
        dimensions.append(_parse_range(name, values) if is_range else _parse_choice(name, values))
    names = [each.name for each in dimensions]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"--search {name}: received twice, expected once")
    return dimensions


def default_space(settings: Settings) -> list[Dimension]:
    """Returns what is searched without `--search`, around the values of the settings.

    These are the learning rate, the batch size, and, if the family of models has them, the dropout
    rate and the width.
    """
    rate, batch = settings.training.learning_rate, settings.training.batch_tokens
    space: list[Dimension] = [
        Range("training.learning_rate", rate / 4, min(rate * 4, 100.0), False),
        _around("training.batch_tokens", batch),
    ]
    fields = FAMILIES[settings.model.family].model_fields
    if "dropout" in fields:
        model: Any = settings.model
        highest = max(0.5, model.dropout)
        space.append(Range("model.dropout", 0.0, highest, False))
    width = next((name for name in _WIDTHS if name in fields), None)
    if width is not None and (units := getattr(settings.model, width)) > 1:
        space.append(_around(f"model.{width}", units))
    return space


def base_values(settings: Settings, space: Sequence[Dimension]) -> dict[str, Value] | None:
    """Returns the values that the settings have, if they are in the space, otherwise None."""
    values: dict[str, Value] = {}
    for dimension in space:
        if dimension.name == PRESET:
            return None
        section, _, key = dimension.name.partition(".")
        value: Any = getattr(getattr(settings, section), key, None)
        if value not in dimension:
            return None
        values[dimension.name] = value if isinstance(dimension, Range) else _text(value)
    return values


def _around(name: str, value: int) -> Choice:
    return Choice(name, (str(value // 2), str(value), str(value * 2)))


def _text(value: object) -> str:
    """Returns a value as in `--set`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_name(name: str) -> None:
    if name == PRESET or name in _OTHERS:
        return
    known = setting_keys()
    if name not in known:
        # Raises the error that suggests the nearest name.
        load_settings(overrides={name: None})
    if name == "model.family":
        raise SettingsError("--search model.family: search presets, as in --search preset=A,B")
    if name.split(".")[0] not in _SECTIONS or name in _NOT_SEARCHED:
        raise SettingsError(
            f"--search {name}: cannot be searched, because it decides on what is compared, or does "
            "not change the training: use --set"
        )


def _parse_range(name: str, values: str) -> Range:
    low, _, high = (part.strip() for part in values.partition(".."))
    where = f"--search {name}"
    try:
        ends = float(low), float(high)
    except ValueError:
        raise SettingsError(
            f"{where}: received {values!r}, expected two numbers, as in 0.001..0.01"
        ) from None
    if not ends[0] < ends[1] < float("inf"):
        raise SettingsError(f"{where}: received {values!r}, expected a smaller and a larger number")
    kinds = _numbers_of(name)
    if not kinds:
        raise SettingsError(f"{where}: is not a number: give choices, as in {name}=A,B")
    if int in kinds and float not in kinds and not all(map(float.is_integer, ends)):
        raise SettingsError(f"{where}: received {values!r}, expected integers")
    return Range(name, *ends, is_integer=float not in kinds)


def _parse_choice(name: str, values: str) -> Choice:
    choices = tuple(dict.fromkeys(part.strip() for part in values.split(",")))
    if "" in choices or len(choices) < 2:
        raise SettingsError(
            f"--search {name}: received {values!r}, expected two or more values, as in A,B, or a "
            "range LOW..HIGH"
        )
    return Choice(name, choices)


def _numbers_of(name: str) -> set[type]:
    """Returns the types of numbers, int or float, that a setting may have."""
    return {
        kind
        for key, field in walk_fields()
        if key == name
        for kind in value_types(field.annotation)
        if kind in (int, float)
    }
