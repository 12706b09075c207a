"""Parses `data.columns`, which selects columns by number or by name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from .errors import InputError

Roles = tuple[str, str]

PAIR: Roles = ("source", "target")
# A third column that pairs may have is one of these.
FEATURES = "features"
TARGET_LANGUAGE = "target_language"
_THIRD = (FEATURES, TARGET_LANGUAGE)
LABELED: Roles = ("text", "label")
TAGGED: Roles = ("text", "tags")

_SHOWN_COLUMNS = 8
_SHOWN_CHARACTERS = 30


class ColumnChoice(NamedTuple):
    """Two or three selected columns of a table, and their text in `data.columns`.

    A column is an index, counted from 0, or a name in the header. The third, whose role is `third`,
    has the features or the target language of pairs.
    """

    text: str
    columns: tuple[int | str, ...]
    third: str | None = None

    @property
    def has_features(self) -> bool:
        """True if a column of features is selected."""
        return self.third == FEATURES

    @property
    def has_languages(self) -> bool:
        """True if a column of target languages is selected."""
        return self.third == TARGET_LANGUAGE

    @property
    def has_header(self) -> bool:
        """True if a column is selected by name."""
        return any(isinstance(column, str) for column in self.columns)

    def indices(self, header: Sequence[str], where: str) -> tuple[int, ...]:
        """Returns the indices of the columns, counted from 0.

        Raises InputError, with `where` as `FILE:LINE` of the header, if a name is missing or occurs
        twice, or if both roles select the same column.
        """
        names = header_names(header)
        indices = tuple(self._index(column, names, where) for column in self.columns)
        for index in indices:
            if indices.count(index) > 1:
                raise InputError(
                    f"{where}: --columns {self} names column {index + 1} twice, expected different "
                    "columns"
                )
        return indices

    def is_in(self, header: Sequence[str]) -> bool:
        """Tests if a header has all columns."""
        names = header_names(header)
        return all(
            column < len(names) if isinstance(column, int) else column in names
            for column in self.columns
        )

    def __str__(self) -> str:
        return short(self.text)

    def _index(self, column: int | str, names: Sequence[str], where: str) -> int:
        if isinstance(column, int):
            return column
        if names.count(column) == 1:
            return names.index(column)
        count = names.count(column)
        problem = f"{count} columns {column!r}" if count else f"no column {column!r}"
        remedy = "give another name or a number in --columns"
        if not count and (role := re.search(r",\s*(\w+)\s*=", column)):
            # A misspelled role is read as the end of the name before it.
            remedy = f"the roles of pairs are {', '.join((*PAIR, *_THIRD))}, not {role[1]}"
            if role[1] in _THIRD:
                remedy = f"pairs have a column of either {FEATURES} or {TARGET_LANGUAGE}"
        raise InputError(f"{where}: {problem} in the header ({show_columns(names)}): {remedy}")


def parse_columns(text: str, roles: Roles) -> ColumnChoice:
    """Parses the value of `data.columns`, such as `source=1,target=3`.

    A column is a number from 1 or a name in the header. `roles` are the words before the equals
    signs, in any order; pairs may have the column `features` or `target_language`, too. Raises
    InputError if the text has a different form or a column twice.

    Example:

    >>> parse_columns("source=english,target=3", ("source", "target")).columns
    ('english', 2)
    """
    columns: dict[str, int | str] = {}
    kinds = [*((*roles, third) for third in _THIRD), roles] if roles == PAIR else [roles]
    orders = (order for names in kinds for order in itertools.permutations(names))
    for order in orders:
        # A name in a header may contain commas and equals signs.
        pattern = ",".join(rf"\s*{role}\s*=(.+)" for role in order)
        match = re.fullmatch(pattern, text, flags=re.DOTALL)
        if match is not None:
            columns = dict(zip(order, map(_column, match.groups()), strict=True))
            break
    if not columns or "" in columns.values() or -1 in columns.values():
        raise InputError(
            f"data.columns: received {short(text)}, expected {roles[0]}=COLUMN,{roles[1]}=COLUMN "
            "with numbers of columns, from 1, or names in the first line"
        )
    third = next((role for role in _THIRD if role in columns), None)
    chosen = tuple(columns[role] for role in (*roles, third) if role in columns)
    if len(set(chosen)) < len(chosen):
        raise InputError(f"data.columns: received {short(text)}, expected different columns")
    return ColumnChoice(text, chosen, third)


def header_names(header: Sequence[str]) -> list[str]:
    """Returns the names in a header with normalized white space."""
    return [" ".join(field.split()) for field in header]


def show_columns(fields: Sequence[str]) -> str:
    """Formats the columns of a line, numbered and shortened, for a message."""
    columns = [
        f"{number} {short(field, _SHOWN_CHARACTERS)}"
        for number, field in enumerate(fields[:_SHOWN_COLUMNS], 1)
    ]
    more = len(fields) - _SHOWN_COLUMNS
    return ", ".join(columns) + (f" and {more:,} more" if more > 0 else "")


def short(text: str, length: int = 60) -> str:
    """Quotes a text for a message, truncated to `length` characters."""
    return repr(text if len(text) <= length else f"{text[:length]}...")


def _column(text: str) -> int | str:
    name = " ".join(text.split())
    # Nine digits are enough: no line has that many columns.
    return int(name[:9]) - 1 if name.isascii() and name.isdigit() else name
