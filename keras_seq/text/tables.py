"""Reads two columns of a tab-separated or CSV file, with or without a header."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .column_choice import (
    PAIR,
    ColumnChoice,
    Roles,
    header_names,
    parse_columns,
    short,
    show_columns,
)
from .errors import InputError, Notice, silent
from .languages import add_language
from .reading import Path, display_name, read_lines
from .table_format import DELIMITERS, Row, TableFormat, find_format, read_records
from .usual_headers import is_header, is_reversed

# Size limits of the sample that determines the format of a file.
_SAMPLE_LINES = 1000
_SAMPLE_CHARACTERS = 1 << 22

NumberedPair = tuple[int, str, str]


def read_table(
    path: Path, *, columns: str | None = None, roles: Roles = PAIR, notice: Notice | None = None
) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a file with one pair per line, in two of its columns.

    A file named `.csv` or `.csv.gz` is read by Python's csv module, with commas, semicolons or tabs
    as delimiters. Any other file is tab-separated, and quotes are text unless the first 1,000 lines
    are quoted as by `csv.writer`. A line break within a quoted field becomes a space.

    `columns` selects two columns, as `"source=1,target=3"`: numbers from 1, or names in a header. A
    third, `features`, follows the source after a tab (see `FeatureTokenizer`), or
    `target_language` precedes it as a tag (see `add_language`). If all are numbers, the first line
    is a pair. Without `columns` the file must have two columns, and a first line
    with common column names is skipped. Two other layouts are recognized: three columns with a
    license that begins with "CC-BY" (Anki decks of Tatoeba sentences), and number, text, number,
    text (Tatoeba itself).

    `notice` is called with a line for each choice. Raises InputError like `read_lines`; if
    `columns` is invalid; or, while iterating, if a line lacks the columns.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "pairs.csv"
    ...     _ = path.write_text('id,de,en\\n1,"Hallo, Welt","Hello, world"\\n')
    ...     list(read_table(path, columns="source=en,target=de"))
    [('Hello, world', 'Hallo, Welt')]
    """
    rows = numbered_pairs(path, columns, roles, notice)
    return ((first, second) for _, first, second in rows)


def numbered_pairs(
    path: Path, columns: str | None, roles: Roles, notice: Notice | None
) -> Iterator[NumberedPair]:
    """Yields the pairs of `read_table`, preceded by the numbers of their first lines (from 1).

    `roles` are the names of the two columns in `columns` and in messages.
    """
    choice = None if columns is None else parse_columns(columns, roles)
    return _read(path, choice, roles, notice or silent)


class _Layout(NamedTuple):
    """The columns to read, counted from 0, and the allowed number of columns of a table.

    `notice` is a message about the detected columns, or None if they are obvious.
    """

    first: int
    second: int
    minimum: int
    maximum: int
    skip: int = 0
    notice: str | None = None
    third: int | None = None
    has_languages: bool = False


def _read(
    path: Path, choice: ColumnChoice | None, roles: Roles, notice: Notice
) -> Iterator[NumberedPair]:
    name = display_name(path)
    lines = read_lines(path, notice=notice)
    sample, complete = _sample(lines)
    form = find_format(path, sample, complete=complete, choice=choice)
    if form.notice is not None:
        notice(f"{name}: {form.notice}")
    if not form.rows or not form.rows[0]:
        # The file is empty, or its first line is blank and raises an error below.
        layout = _Layout(0, 1, 2, 2)
    elif choice is not None:
        layout = _selected_layout(name, form, choice)
    else:
        layout = _detected_layout(name, form, roles)
    if layout.notice is not None:
        notice(f"{name}:1: {layout.notice}")
    all_lines = itertools.chain(sample, lines)
    if not form.quoted and layout[:4] == (0, 1, 2, 2) and layout.third is None:
        between = f"{roles[0]} and {roles[1]}"
        pair_lines = itertools.islice(all_lines, layout.skip, None)
        for number, line in enumerate(pair_lines, 1 + layout.skip):
            fields = line.split("\t")
            if len(fields) != 2:
                tabs = f"{len(fields) - 1} tabs" if len(fields) > 1 else "no tab"
                raise InputError(f"{name}:{number}: {tabs}, expected one between {between}")
            yield number, fields[0], fields[1]
        return
    records: Iterator[tuple[int, Row]] = enumerate((line.split("\t") for line in all_lines), 1)
    if form.quoted:
        records = read_records(name, all_lines, form.delimiter)
    yield from _read_columns(name, records, form, layout, choice, notice)


def _sample(lines: Iterator[str]) -> tuple[list[str], bool]:
    """Reads the first lines; also returns True if there are no more lines."""
    sample: list[str] = []
    characters = 0
    for line in lines:
        sample.append(line)
        characters += len(line)
        if len(sample) == _SAMPLE_LINES or characters > _SAMPLE_CHARACTERS:
            return sample, False
    return sample, True


def _read_columns(
    name: str,
    records: Iterable[tuple[int, Row]],
    form: TableFormat,
    layout: _Layout,
    choice: ColumnChoice | None,
    notice: Notice,
) -> Iterator[NumberedPair]:
    breaks = 0
    for index, (number, row) in enumerate(records):
        if not layout.minimum <= len(row) <= layout.maximum:
            raise _count_error(f"{name}:{number}", row, form, layout, choice)
        if index < layout.skip:
            continue
        first, second = row[layout.first], row[layout.second]
        if layout.third is not None and not layout.has_languages:
            first = "\t".join(text.replace("\t", " ") for text in (first, row[layout.third]))
        if "\n" in first or "\n" in second:
            breaks += first.count("\n") + second.count("\n")
            first, second = first.replace("\n", " "), second.replace("\n", " ")
        if layout.third is not None and layout.has_languages:
            try:
                first = add_language(first, row[layout.third].strip())
            except InputError as error:
                raise InputError(f"{name}:{number}: {error}") from None
        yield number, first, second
    if breaks:
        notice(f"{name}: line breaks within fields are replaced by spaces ({breaks:,})")


def _selected_layout(name: str, form: TableFormat, choice: ColumnChoice) -> _Layout:
    header = form.rows[0]
    first, second, *third = choice.indices(header, f"{name}:1")
    needed = max(first, second, *third) + 1
    # An unquoted delimiter within a text shifts the columns, so a line must not have more columns
    # than the first line. In CSV, whose text often has delimiters, it must not have fewer either.
    least = max(needed, len(header) if form.quoted else 0)
    layout = _Layout(
        first,
        second,
        least,
        len(header),
        third=next(iter(third), None),
        has_languages=choice.has_languages,
    )
    if choice.has_header:
        return layout._replace(skip=1)
    if needed <= len(header) and is_header([header[first], header[second]]):
        return layout._replace(
            notice=f"{short(header[first])} and {short(header[second])} are read as a pair; if "
            "this is a header, name its columns in --columns"
        )
    return layout


def _detected_layout(name: str, form: TableFormat, roles: Roles) -> _Layout:
    header, count = form.rows[0], len(form.rows[0])
    plain = _Layout(0, 1, 2, 2)
    advice = f"{roles[0]}=1,{roles[1]}=2"
    if count < 2:
        return plain
    if count == 2:
        if not is_header(header):
            return plain
        if is_reversed(header, roles):
            names = header_names(header)
            raise InputError(
                f"{name}:1: the header ({show_columns(header)}) has {roles[0]} and {roles[1]} in "
                f"the other order: give --columns {roles[0]}={names[1]},{roles[1]}={names[0]}"
            )
        return plain._replace(
            skip=1,
            notice=f"{short(header[0])} and {short(header[1])} are read as a header, and skipped; "
            f"if this is a pair, give --columns {advice}",
        )
    if roles == PAIR and count == 3 and _is_anki(form.rows):
        return _Layout(0, 1, 3, 3, notice="the third column is a license, and ignored")
    if roles == PAIR and count == 4 and _is_tatoeba(form.rows):
        return _Layout(1, 3, 4, 4, notice="columns 1 and 3 are numbers; columns 2 and 4 are read")
    raise InputError(
        f"{name}:1: {count} columns ({show_columns(header)}), expected 2: choose two, as in "
        f"--columns {advice}"
    )


def _is_anki(rows: Sequence[Row]) -> bool:
    return all(len(row) == 3 and row[2].startswith("CC-BY") for row in rows)


def _is_tatoeba(rows: Sequence[Row]) -> bool:
    """Tests if the columns are number, text, number, text."""
    numbered = all(len(row) == 4 and _is_number(row[0]) and _is_number(row[2]) for row in rows)
    return numbered and not all(_is_number(row[1]) and _is_number(row[3]) for row in rows)


def _is_number(field: str) -> bool:
    return field.isascii() and field.isdigit()


def _count_error(
    where: str,
    fields: Sequence[str],
    form: TableFormat,
    layout: _Layout,
    choice: ColumnChoice | None,
) -> InputError:
    if not fields or list(fields) == [""]:
        return InputError(f"{where}: a blank line, expected {layout.minimum} columns")
    columns = "1 column" if len(fields) == 1 else f"{len(fields):,} columns"
    received = f"{where}: {columns} ({show_columns(fields)})"
    needed = max(layout.first, layout.second, layout.third or 0) + 1
    if choice is not None and len(fields) < needed:
        return InputError(f"{received}, expected at least {needed} for --columns {choice}")
    if len(fields) < layout.minimum:
        between = DELIMITERS[form.delimiter]
        return InputError(f"{received}, expected {layout.minimum} with {between} between them")
    if form.quoted:
        return InputError(
            f"{received}, expected {layout.maximum}: put quotes around a field that contains "
            f"{form.delimiter!r}"
        )
    return InputError(f"{received}, expected at most {layout.maximum}, as in line 1")
