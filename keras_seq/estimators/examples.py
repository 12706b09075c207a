"""Rows of text from Python objects: lists, iterators, tables and data sets."""

from __future__ import annotations

import csv
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_seq.data import write_sound
from keras_seq.settings import TASKS
from keras_seq.text import PAIR, TAGGED, InputError

Columns = Sequence[str | int] | None
Row = tuple[str, ...]

_FEATURES = "features"
_MISSING = "nothing"


def rows_of(
    examples: Any, task: str, columns: Columns = None, folder: str | os.PathLike[str] | None = None
) -> Iterator[Row]:
    """Yields the examples of a task as rows of text.

    A row has a source and a target, and the features of the source if there is a third column; a
    text and its label; words and their tags, with spaces between; or a text alone. Numbers that a
    data set of Hugging Face has names for become these names.

    Args:
        examples: Rows as sequences or dicts; a dict of columns; a table of pandas; or a data
            set of Hugging Face. They are read once.
        task: The task, which decides what a row has.
        columns: The columns of a row, by name or by number from 0, in the order of a row. By
            default the columns named `source` and `target`, `text` and `label`, or `text` and
            `tags`; otherwise all columns. A name with dots, such as `translation.de`, selects
            within dicts.
        folder: Where recordings that are arrays are written, for speech and wake words.

    Raises:
        InputError: With the number of the row, from 0, if it does not have the columns, or a value
            is missing or of another type.

    Example:

    >>> list(rows_of([{"en": "a dog", "de": "ein Hund"}], "translate", ["en", "de"]))
    [('a dog', 'ein Hund')]
    >>> list(rows_of([(["a", "dog"], ["DET", "NOUN"])], "tag"))
    [('a dog', 'DET NOUN')]
    """
    reader = _RowReader(task, columns, folder, examples)
    return (reader.row(number, example) for number, example in enumerate(_iterate(examples)))


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Writes rows to a CSV file, each field in quotes; a single column to a file of lines."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for row in rows:
            if len(row) == 1:
                file.write(f"{row[0]}\n")
            else:
                writer.writerow(row)


def _iterate(examples: Any) -> Iterable[Any]:
    """Returns the rows of tables as dicts; other objects are iterated."""
    if isinstance(examples, Mapping):
        if any(hasattr(column, "column_names") for column in examples.values()):
            splits = ", ".join(map(repr, examples))
            raise TypeError(f"`examples` has several data sets, give one of {splits}.")
        names, columns = list(examples), list(examples.values())
        if len({len(column) for column in columns}) > 1:
            lengths = ", ".join(f"{name} {len(examples[name]):,}" for name in names)
            raise InputError(f"columns of different lengths: {lengths}")
        return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    if hasattr(examples, "itertuples"):
        names = list(examples.columns)
        rows = examples.itertuples(index=False, name=None)
        return (dict(zip(names, values, strict=True)) for values in rows)
    if isinstance(examples, str | bytes) or not isinstance(examples, Iterable):
        raise TypeError(f"`examples` must be rows, received {type(examples).__name__}.")
    return examples


class _RowReader:
    """Turns one example after the other into a row."""

    def __init__(
        self, task: str, columns: Columns, folder: str | os.PathLike[str] | None, examples: Any
    ) -> None:
        self.roles: tuple[str, ...] = TASKS[task].roles or ("text",)
        self.columns, self.reads_sounds = columns, TASKS[task].reads_sounds
        self.folder = folder
        self.is_tagged = self.roles == TAGGED
        self.most = 3 if self.roles == PAIR and not self.reads_sounds else len(self.roles)
        if columns is not None and not len(self.roles) <= len(columns) <= self.most:
            raise ValueError(
                f"`columns` must name {' and '.join(self.roles)}, received {list(columns)}."
            )
        self.names_of = _class_names(examples)

    def row(self, number: int, example: Any) -> Row:
        where = f"row {number}"
        if isinstance(example, Mapping):
            keys = self._keys(example, where)
            values = [_lookup(example, key, where) for key in keys]
        else:
            keys, values = self._positions(example, where)
        return tuple(
            self._text(place, key, value, f"{where}: {key}" if keys != [0] else where)
            for place, (key, value) in enumerate(zip(keys, values, strict=True))
        )

    def _keys(self, example: Mapping[Any, Any], where: str) -> list[Any]:
        names = list(example)
        if self.columns is not None:
            return [
                names[key] if isinstance(key, int) and key not in example else key
                for key in self.columns
            ]
        wanted: list[Any] = list(self.roles)
        if all(name in example for name in wanted):
            has_features = self.most == 3 and _FEATURES in example
            return [*wanted, _FEATURES] if has_features else wanted
        if len(example) == len(self.roles) and not any(map(_is_mapping, example.values())):
            return names
        found = ", ".join(map(str, _paths(example)))
        raise InputError(
            f"{where}: columns {found}: name those of {' and '.join(self.roles)} in `columns`"
        )

    def _positions(self, example: Any, where: str) -> tuple[list[Any], list[Any]]:
        if len(self.roles) == 1 and self.columns is None:
            return [0], [example]
        if isinstance(example, str | bytes) or not isinstance(example, Sequence | np.ndarray):
            expected = f"a row of {' and '.join(self.roles)}"
            raise InputError(f"{where}: received {_shown(example)}, expected {expected}")
        keys: list[Any] = list(range(len(example))) if self.columns is None else list(self.columns)
        if self.columns is None and not len(self.roles) <= len(keys) <= self.most:
            expected = f"{len(self.roles)} ({', '.join(self.roles)})"
            raise InputError(f"{where}: {len(keys)} columns, expected {expected}")
        if any(not isinstance(key, int) or not 0 <= key < len(example) for key in keys):
            raise InputError(f"{where}: {len(example)} columns, expected the columns {keys}")
        return keys, [example[key] for key in keys]

    def _text(self, place: int, key: Any, value: Any, where: str) -> str:
        role = _FEATURES if place == len(self.roles) else self.roles[place]
        if self.reads_sounds and place == 0:
            return self._sound(value, where)
        if self.is_tagged and not isinstance(value, str):
            return " ".join(_word(self._name(key, one), where) for one in _items(value, where))
        if role == "label":
            value = self._name(key, value)
        if not isinstance(value, str):
            raise InputError(f"{where}: received {_shown(value)}, expected text")
        return value

    def _name(self, key: Any, value: Any) -> Any:
        """Returns the name of a class that is given by its number."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
            return str(value) if isinstance(value, bool | np.bool_) else value
        names = self.names_of.get(key)
        return str(operator.index(value)) if names is None else names(int(value))

    def _sound(self, value: Any, where: str) -> str:
        if isinstance(value, str | os.PathLike):
            return os.path.abspath(value)
        if isinstance(value, Mapping) and {"array", "sampling_rate"} <= value.keys():
            value = (value["array"], value["sampling_rate"])
        if not isinstance(value, tuple) or len(value) != 2 or self.folder is None:
            expected = "a path, or samples and their number per second"
            raise InputError(f"{where}: received {_shown(value)}, expected {expected}")
        path = Path(self.folder) / f"{where.partition(':')[0].replace(' ', '-')}.wav"
        write_sound(path, np.asarray(value[0], np.float32), int(value[1]))
        return str(path)


def _class_names(examples: Any) -> dict[str, Callable[[int], str]]:
    """Returns functions from numbers to names, by column, of a data set of Hugging Face."""
    names = {}
    for key, feature in dict(getattr(examples, "features", None) or {}).items():
        inner = getattr(feature, "feature", feature)
        if inner is not None and hasattr(inner, "int2str"):
            names[key] = inner.int2str
    return names


def _lookup(example: Mapping[Any, Any], key: Any, where: str) -> Any:
    """Returns a value by its name, or by names with dots between for dicts within dicts."""
    if key in example:
        return example[key]
    value: Any = example
    for part in str(key).split("."):
        if not isinstance(value, Mapping) or part not in value:
            names = ", ".join(map(str, _paths(example)))
            raise InputError(f"{where}: no column {key!r} among {names}")
        value = value[part]
    return value


def _paths(example: Mapping[Any, Any]) -> Iterator[Any]:
    for key, value in example.items():
        if isinstance(value, Mapping):
            yield from (f"{key}.{inner}" for inner in _paths(value))
        else:
            yield key


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _items(value: Any, where: str) -> Iterable[Any]:
    if not isinstance(value, Sequence | np.ndarray):
        raise InputError(f"{where}: received {_shown(value)}, expected words")
    return value


def _word(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value.split()) != 1:
        raise InputError(f"{where}: received {_shown(value)}, expected a word without spaces")
    return value


def _shown(value: Any) -> str:
    """Describes a value in a message."""
    missing = value is None or (isinstance(value, float) and value != value)
    text = _MISSING if missing else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
