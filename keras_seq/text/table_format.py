"""Detects the delimiter and the quoting of a table from its file name and first lines."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .column_choice import ColumnChoice
from .errors import InputError
from .reading import MAX_LINE_BYTES, Path

Row = list[str]

# In order of preference; the comma is the default of `csv.writer`.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class TableFormat(NamedTuple):
    """The format of a table, with the fields of its first lines.

    If `quoted`, the csv module reads the lines; otherwise quotes are text. `notice` is a message
    about the detected format, or None if the format is obvious.
    """

    delimiter: str
    quoted: bool
    rows: list[Row]
    notice: str | None = None


class _Record(NamedTuple):
    """A row that was read from lines `begin` to `end` - 1."""

    begin: int
    end: int
    row: Row


class _Parsed(NamedTuple):
    """The records of a sample before the first error of the csv module, if there is one."""

    records: list[_Record]
    valid: bool

    @property
    def rows(self) -> list[Row]:
        """The fields of each record, without blank lines."""
        return [record.row for record in self.records if record.row]

    @property
    def is_even(self) -> bool:
        """True if all rows have the same number of columns, at least 2."""
        counts = set(map(len, self.rows))
        return self.valid and len(counts) == 1 and counts.pop() >= 2


def find_format(
    path: Path, sample: Sequence[str], *, complete: bool, choice: ColumnChoice | None = None
) -> TableFormat:
    """Detects the format of a file from its first lines.

    A file named `.csv` or `.csv.gz` is CSV. Its delimiter is the first of comma, semicolon and tab
    that splits all lines of the sample into the same number of columns, at least 2. Any other file
    is tab-separated, and quotes are text. Exception: quotes are CSV quotes if all quotes of the
    sample are valid CSV and either a quoted field needs its quotes or every field is quoted.
    `complete` tells if the sample is the entire file. The first line must have the columns of
    `choice`.
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
            "\t", True, parsed.rows, "fields are quoted as in CSV, and read without their quotes"
        )
    notice = None
    if quoting and quoting.some:
        notice = "some fields are in quotes, which are kept as text"
    return TableFormat("\t", False, plain, notice)


def is_csv(path: Path) -> bool:
    """Tests if a file name belongs to a CSV file, such as `data.CSV` or `data.csv.gz`."""
    return str(path).lower().removesuffix(".gz").endswith(".csv")


def read_records(name: str, lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, Row]]:
    """Yields the number of the first line (from 1) and the fields of each CSV record.

    Raises InputError if the csv module rejects a record, or if a record is longer than a line may
    be.
    """
    number, size = 1, 0

    def counted() -> Iterator[str]:
        nonlocal size
        for line in lines:
            size += len(line)
            # The lines of a field in quotes are short, but their number has no limit.
            if size > MAX_LINE_BYTES:
                raise InputError(
                    f"{name}:{number}: a record of more than {MAX_LINE_BYTES >> 20} MiB, is a "
                    "quote never closed?"
                )
            yield line

    reader = _reader(counted(), delimiter)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise InputError(f"{name}:{number}: {_explain(str(error))}") from None
        if row is None:
            return
        yield number, row
        number, size = reader.line_num + 1, 0


class _Quoting(NamedTuple):
    """The use of quotes in a sample.

    `some` is True if a field is quoted, `every` if every nonempty field is quoted, `needed` if a
    quoted field contains a quote or a delimiter, `merged` if a record spans several lines, and
    `stray` if an unquoted field contains a quote.
    """

    some: bool
    every: bool
    needed: bool
    merged: bool
    stray: bool

    def is_certain(self, *, ragged: bool) -> bool:
        """Tests if the quotes are certainly CSV quotes.

        `ragged` is True if splitting at each tab gives different numbers of columns.
        """
        if self.stray or not self.some:
            return False
        return ragged or (not self.merged and (self.needed or self.every))


def _quoting(sample: Sequence[str], records: Sequence[_Record]) -> _Quoting:
    some = needed = stray = False
    every = True
    for begin, end, row in records:
        raw = "\n".join(sample[begin:end])
        position = 0
        for field in row:
            quoted = '"' + field.replace('"', '""') + '"'
            if raw.startswith(quoted, position):
                some = True
                needed = needed or any(character in field for character in '"\t\r')
                position += len(quoted) + 1
            else:
                every = every and not field
                stray = stray or '"' in field
                position += len(field) + 1
    merged = any(end - begin > 1 for begin, end, _ in records)
    return _Quoting(some, every, needed, merged, stray)


def _find_delimiter(
    sample: Sequence[str], complete: bool, choice: ColumnChoice | None
) -> TableFormat:
    parsed = {delimiter: _parse(sample, delimiter, complete) for delimiter in DELIMITERS}
    even = [delimiter for delimiter, result in parsed.items() if result.is_even]

    def fits(row: Row) -> bool:
        return len(row) == 2 if choice is None else choice.is_in(row)

    fitting = [delimiter for delimiter in even if fits(parsed[delimiter].rows[0])]
    # If no delimiter fits all lines, the first line determines the delimiter. The reader then
    # reports the first line with a different number of columns.
    first = [
        delimiter for delimiter, result in parsed.items() if result.rows and len(result.rows[0]) > 1
    ]
    delimiter = (fitting + even + first + [","])[0]
    notice = f"read as CSV, with {DELIMITERS[delimiter]} between columns"
    return TableFormat(delimiter, True, parsed[delimiter].rows, notice)


def _parse(sample: Sequence[str], delimiter: str, complete: bool) -> _Parsed:
    """Parses a sample. Ignores a last record that the end of the sample truncates."""
    reader = _reader(sample, delimiter)
    records: list[_Record] = []
    begin = 0
    try:
        for row in reader:
            records.append(_Record(begin, reader.line_num, row))
            begin = reader.line_num
    except csv.Error as error:
        # A quote that is open since the first half of the sample is more likely to be text.
        return _Parsed(records, not complete and _is_open(str(error)) and begin >= len(sample) // 2)
    return _Parsed(records, True)


def _reader(lines: Iterable[str], delimiter: str) -> Any:
    # Without `strict`, an unclosed quote would merge all later lines into one field.
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
