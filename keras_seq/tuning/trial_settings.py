"""The settings of trials: the settings of the user with the searched values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_seq.preparation import resolve_settings
from keras_seq.preparation.sharing import with_prepared
from keras_seq.run import Run
from keras_seq.settings import TASKS, Settings, SettingsError, load_settings
from keras_seq.text import Notice
from keras_seq.tuning.search_space import PRESET, Choice, Dimension, Range, Values

# Values of `training.monitor` that are means over tokens.
_PER_TOKEN = ("loss", "perplexity", "accuracy", "elbo", "reconstruction")


class TrialSettings:
    """Makes the settings of trials.

    Args:
        preset, file, overrides: As for `load_settings`, without what is searched.
        notice: Function that receives messages about the choice of a preset.
        earlier: A run on the same text, whose counts of the text are used.
    """

    def __init__(
        self,
        preset: str | None,
        file: str | Path | None,
        overrides: Mapping[str, Any] | Iterable[str] | None,
        notice: Notice | None = None,
        earlier: Run | None = None,
    ) -> None:
        given = overrides.items() if isinstance(overrides, Mapping) else None
        self._overrides: dict[str, Any] | list[str]
        self._overrides = dict(given) if given is not None else list(overrides or ())
        self._file = file
        self.preset = preset
        self.base, _ = resolve_settings(
            preset=preset, file=file, overrides=self._overrides, notice=notice, earlier=earlier
        )
        if self.base.training.max_minutes is not None:
            raise SettingsError(
                f"training.max_minutes: received {self.base.training.max_minutes:g}, expected "
                "none: --minutes is the time of all trials"
            )

    def make(self, values: Values) -> Settings:
        """Returns the settings of a trial. Raises SettingsError if they do not fit together."""
        searched = {key: value for key, value in values.items() if key != PRESET}
        overrides = self._with(searched)
        if PRESET in values:
            settings, _ = resolve_settings(
                preset=str(values[PRESET]), file=self._file, overrides=overrides
            )
            return settings
        return load_settings(base=self.base.to_dict(), file=self._file, overrides=overrides)

    def check(self, space: Sequence[Dimension]) -> None:
        """Raises SettingsError if a value of the space does not fit the task and the family."""
        for dimension in space:
            for value in dimension.ends:
                try:
                    settings = self.make({dimension.name: value})
                    with_prepared(settings)
                except SettingsError as error:
                    raise SettingsError(f"--search {dimension.name}: {error}") from None
            self._check_comparable(dimension)

    def valid_part(self, space: Sequence[Dimension]) -> list[Dimension]:
        """Returns the space without choices that do not fit the other settings."""
        part: list[Dimension] = []
        for each in space:
            if isinstance(each, Range):
                part.append(each)
                continue
            values = tuple(value for value in each.values if self.is_valid({each.name: value}))
            if len(values) > 1:
                part.append(Choice(each.name, values))
        return part

    def is_valid(self, values: Values) -> bool:
        """Tests if the values of a trial fit together."""
        try:
            self.make(values)
        except SettingsError:
            return False
        return True

    def _with(self, values: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        if isinstance(self._overrides, dict):
            return {**self._overrides, **values}
        return [*self._overrides, *(f"{key}={value}" for key, value in values.items())]

    def _check_comparable(self, dimension: Dimension) -> None:
        """Refuses to compare losses per token of different vocabularies."""
        monitor, task = self.base.training.monitor, TASKS[self.base.task]
        if monitor == "auto" and not task.compares_texts:
            monitor = "loss"
        is_of_text = dimension.name.startswith("tokenizer.")
        if is_of_text and monitor in _PER_TOKEN and not task.has_labels:
            raise SettingsError(
                f"--search {dimension.name}: the validation is per token, and tokens of different "
                "vocabularies cannot be compared: set the vocabulary with --set"
            )
