"""Separator and quoting of a table of columns, found from its name and its first lines."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .column_choice import ColumnChoice
from .errors import InputError
from .reading import Path

Row = list[str]

# The comma first: what `csv.writer` writes by default is then read as it was written.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class TableFormat(NamedTuple):
    """How the lines of a file become columns.

    Attributes:
        delimiter: The character between two columns.
        quoted: Whether the csv module reads the lines; if not, every quote is text.
        rows: The columns of the first lines.
        notice: The decision in one line; None if there was nothing to decide.
    """

    delimiter: str
    quoted: bool
    rows: list[Row]
    notice: str | None = None


class _Record(NamedTuple):
    """A row, and the lines from `begin` to before `end` that it was read from."""

    begin: int
    end: int
    row: Row


class _Parsed(NamedTuple):
    """Result of the csv module for a sample.

    Attributes:
        records: All records, or those before the first that the module refuses.
        whole: Whether the module refuses none.
    """

    records: list[_Record]
    whole: bool

    @property
    def rows(self) -> list[Row]:
        """The fields of each record; blank lines are left out."""
        return [record.row for record in self.records if record.row]

    @property
    def is_even(self) -> bool:
        """True if all rows have the same number of columns, at least 2."""
        counts = set(map(len, self.rows))
        return self.whole and len(counts) == 1 and counts.pop() >= 2


def find_format(
    path: Path, sample: Sequence[str], *, complete: bool, choice: ColumnChoice | None = None
) -> TableFormat:
    """Finds the format of a file.

    A file named `.csv` or `.csv.gz` is CSV. Its delimiter is the comma, the semicolon or the tab:
    the first that gives all lines of the sample the same number of columns, 2 or more. Any other
    file has tabs, and its quotes are text. The exception is a sample in which all quotes are those
    of CSV, and in which a quoted field needs its quotes or every field has them.

    Args:
        path: The file, whose name ends in `.csv` or not.
        sample: Its first lines.
        complete: Whether these are all lines.
        choice: The columns to read, which the first line must have in the format.
    """
    if is_csv(path):
        return _find_delimiter(sample, complete, choice)
    plain = [line.split("\t") for line in sample]
    if not any('"' in line for line in sample):
        return TableFormat("\t", False, plain)
    parsed = _parse(sample, "\t", complete)
    quoting = _quoting(sample, parsed.records) if parsed.is_even else None
    if quoting and quoting.is_certain(ragged=len(set(map(len, plain))) > 1):
        return TableFormat(
            "\t",
            True,
            parsed.rows,
            "fields are quoted as in CSV, and read without their quotes",
        )
    kept = None
    if quoting and quoting.some:
        kept = "some fields are in quotes, which are kept as text"
    return TableFormat("\t", False, plain, kept)


def is_csv(path: Path) -> bool:
    """True if a file is CSV by its name.

    Args:
        path: As `data.csv`, `data.CSV` or `data.csv.gz`.
    """
    return str(path).lower().removesuffix(".gz").endswith(".csv")


def read_records(name: str, lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, Row]]:
    """Yields the number of the first line of each record of CSV, from 1, and its fields.

    Args:
        name: The file, for messages.
        lines: Its lines, without line ends.
        delimiter: The character between two columns.

    Raises:
        InputError: For what the csv module refuses, with the line where the record begins.
    """
    reader = _reader(lines, delimiter)
    number = 1
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise InputError(f"{name}:{number}: {_explain(str(error))}") from None
        if row is None:
            return
        yield number, row
        number = reader.line_num + 1


class _Quoting(NamedTuple):
    """Quotes found in a sample.

    Attributes:
        some: Whether a field is quoted.
        every: Whether every field that is not empty is quoted.
        needed: Whether a quoted field would be misread without its quotes.
        merged: Whether a record has several lines.
        stray: Whether a field without quotes around it contains one.
    """

    some: bool
    every: bool
    needed: bool
    merged: bool
    stray: bool

    def is_certain(self, *, ragged: bool) -> bool:
        """True if the quotes are those of CSV for certain.

        Args:
            ragged: Whether lines that are cut at each tab differ in their number of columns.
        """
        if self.stray or not self.some:
            return False
        return ragged or (not self.merged and (self.needed or self.every))


def _quoting(sample: Sequence[str], records: Sequence[_Record]) -> _Quoting:
    some = needed = stray = False
    every = True
    for begin, end, row in records:
        raw = "\n".join(sample[begin:end])
        place = 0
        for field in row:
            quoted = '"' + field.replace('"', '""') + '"'
            if raw.startswith(quoted, place):
                some = True
                needed = needed or any(character in field for character in '"\t\r')
                place += len(quoted) + 1
            else:
                every = every and not field
                stray = stray or '"' in field
                place += len(field) + 1
    merged = any(end - begin > 1 for begin, end, _ in records)
    return _Quoting(some, every, needed, merged, stray)


def _find_delimiter(
    sample: Sequence[str], complete: bool, choice: ColumnChoice | None
) -> TableFormat:
    parsed = {delimiter: _parse(sample, delimiter, complete) for delimiter in DELIMITERS}
    even = [delimiter for delimiter, found in parsed.items() if found.is_even]

    def fits(row: Row) -> bool:
        return len(row) == 2 if choice is None else choice.is_in(row)

    fitting = [delimiter for delimiter in even if fits(parsed[delimiter].rows[0])]
    # If no delimiter fits all lines, the first line decides, and the reader names the line that
    # differs.
    first = [
        delimiter for delimiter, found in parsed.items() if found.rows and len(found.rows[0]) > 1
    ]
    delimiter = (fitting + even + first + [","])[0]
    notice = f"read as CSV, with {DELIMITERS[delimiter]} between columns"
    return TableFormat(delimiter, True, parsed[delimiter].rows, notice)


def _parse(sample: Sequence[str], delimiter: str, complete: bool) -> _Parsed:
    """The records of a sample, without a record that the sample cuts off."""
    reader = _reader(sample, delimiter)
    records: list[_Record] = []
    begin = 0
    try:
        for row in reader:
            records.append(_Record(begin, reader.line_num, row))
            begin = reader.line_num
    except csv.Error as error:
        # A quote that opens more than half of the sample is more likely one that is text.
        return _Parsed(records, not complete and _is_open(str(error)) and begin >= len(sample) // 2)
    return _Parsed(records, True)


def _reader(lines: Iterable[str], delimiter: str) -> Any:
    # Strict: otherwise a quote that is never closed makes one field of all lines after it.
    return csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True)


def _is_open(error: str) -> bool:
    return "unexpected end" in error


def _explain(error: str) -> str:
    if _is_open(error):
        return "a field begins with a quote that is never closed"
    if "field limit" in error:
        limit = csv.field_size_limit()
        return f"a field has more than {limit:,} characters; is a quote not closed?"
    return f"not CSV ({error}): a quote within a quoted field is written twice"
