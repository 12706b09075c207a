"""Reads the lines of text files; only `\\n` ends a line."""

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Literal

from .errors import InputError, Notice, silent

Errors = Literal["strict", "replace"]
Path = str | os.PathLike[str]

_UTF8_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
# A line is held in memory. A compressed file of a few megabytes can have a line of gigabytes.
MAX_LINE_BYTES = 1 << 24
# With a small buffer, a gzip reader spends most of its time in Python calls.
_BUFFER_BYTES = 1 << 20


def read_lines(
    path: Path, *, errors: Errors = "strict", notice: Notice | None = None
) -> Iterator[str]:
    """Yields the lines of a text file without their line ends.

    The file is read as a stream, and opened when the iteration starts. Only `\\n` ends a line. The
    CR of a CRLF and a UTF-8 byte order mark are stripped, with one notice each per file. The last
    line needs no line end. `path` is a plain file, a gzip file whose name ends in `.gz`, or `"-"`
    for standard input. For bytes that are not UTF-8, `errors="strict"` raises InputError, and
    `"replace"` inserts U+FFFD, with one notice. Raises InputError, while iterating, if the file is
    missing, a directory, unreadable, not gzip or truncated, or has a line of more than 16 MiB.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.txt"
    ...     _ = path.write_bytes("one\\u2028still one\\ntwo".encode())
    ...     len(list(read_lines(path)))
    2
    """
    if errors not in ("strict", "replace"):
        raise ValueError(f'errors must be "strict" or "replace", not {errors!r}')
    return _decoded(path, errors, notice or silent)


def read_pairs(
    source: Path, target: Path, *, notice: Notice | None = None
) -> Iterator[tuple[str, str]]:
    """Yields the pairs of lines of two parallel files, including blank ones.

    The files are read by `read_lines`; at most one may be `"-"`. Raises InputError like
    `read_lines`, and after the last common line if the files have different numbers of lines.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = [pathlib.Path(folder) / name for name in ("a.en", "a.de")]
    ...     for name, text in zip(names, ("a dog\\n", "ein Hund\\n")):
    ...         _ = name.write_text(text)
    ...     list(read_pairs(*names))
    [('a dog', 'ein Hund')]
    """
    if str(source) == str(target) == "-":
        raise InputError("standard input cannot be both source and target: name a file for one")
    lines = [read_lines(path, notice=notice) for path in (source, target)]
    return zip_lines([display_name(source), display_name(target)], lines)


def zip_lines(names: Sequence[str], columns: Sequence[Iterator]) -> Iterator[tuple]:
    """Zips the lines of parallel files; raises InputError if their numbers differ."""
    count = 0
    end = object()
    for first in columns[0]:
        row = (first, *(next(column, end) for column in columns[1:]))
        if end in row:
            total = count + 1 + sum(1 for _ in columns[0])
            raise _unequal(names[0], total, names[row.index(end)], count)
        count += 1
        yield row
    for name, column in zip(names[1:], columns[1:], strict=True):
        if next(column, end) is not end:
            raise _unequal(names[0], count, name, count + 1 + sum(1 for _ in column))


def count_lines(path: Path) -> int:
    """Counts the lines that `read_lines` would yield, without decoding them."""
    return sum(1 for _ in _raw(path))


def check_readable(path: Path) -> None:
    """Checks that `read_lines` can open a file, before any expensive work.

    Only the first bytes are read, and standard input (`"-"`) is not read. Raises InputError if the
    file is missing, a directory or unreadable, or named `.gz` without being a gzip file.
    """
    if str(path) == "-":
        return
    try:
        # Reading from a pipe, as in `<(command)`, would consume its first bytes.
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return
    except (OSError, ValueError) as error:
        raise InputError(_reason(display_name(path), error)) from None
    with _opened(path) as file, _explained(display_name(path)):
        file.read(1)


def check_same_length(source: Path, target: Path) -> None:
    """Checks that parallel files have equal numbers of lines, before any expensive work.

    Raises InputError. Standard input and pipes are not read; `read_pairs` checks them.
    """
    for path in (source, target):
        check_readable(path)
    if any(str(path) == "-" or stat.S_ISFIFO(os.stat(path).st_mode) for path in (source, target)):
        return
    counts = count_lines(source), count_lines(target)
    if counts[0] != counts[1]:
        raise _unequal(str(source), counts[0], str(target), counts[1])


def _unequal(first: str, first_count: int, other: str, other_count: int) -> InputError:
    return InputError(
        f"{first} has {first_count} lines but {other} has {other_count}: "
        "line N of one must go with line N of the other"
    )


def display_name(path: Path) -> str:
    """Returns the name of a file for messages."""
    return "standard input" if str(path) == "-" else str(path)


def _reason(name: str, error: Exception) -> str:
    match error:
        case FileNotFoundError():
            return f"{name}: no such file"
        case IsADirectoryError():
            return f"{name}: is a directory, expected a text file"
        case PermissionError():
            return f"{name}: permission denied"
        case EOFError():
            return f"{name}: the gzip file is truncated: copy or compress it again"
        case gzip.BadGzipFile() | zlib.error():
            return f"{name}: named .gz, but not a valid gzip file ({error})"
        case OSError():
            return f"{name}: cannot be read: {error.strerror or error}"
    return f"{name}: cannot be read: {error}"


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Converts exceptions of the operating system and of gzip to InputError."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(_reason(name, error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | io.BufferedReader]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = io.BufferedReader(open(path, "rb", buffering=0), _BUFFER_BYTES)
    except (OSError, ValueError) as error:
        raise InputError(_reason(display_name(path), error)) from None
    with file:
        if not str(path).endswith(".gz"):
            yield file
            return
        with _explained(display_name(path)):
            # The gzip module accepts an empty file.
            if not file.peek(1):
                raise EOFError
        with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
            yield io.BufferedReader(unpacked, _BUFFER_BYTES)


def _raw(path: Path) -> Iterator[bytes]:
    """Yields the lines as bytes, with their line ends."""
    # Text mode would split at a lone CR, too, and `str.splitlines` at U+2028 and others.
    name = display_name(path)
    with _opened(path) as file, _explained(name):
        number = 1
        while line := file.readline(MAX_LINE_BYTES + 1):
            if len(line) > MAX_LINE_BYTES:
                raise InputError(
                    f"{name}:{number}: more than {MAX_LINE_BYTES:,} bytes without a line end, "
                    "expected one sentence per line"
                )
            yield line
            number += 1


def _decoded(path: Path, errors: Errors, notice: Notice) -> Iterator[str]:
    name = display_name(path)
    seen_crlf = seen_invalid = False
    for number, line in enumerate(_raw(path), 1):
        first_bytes = line[:3]
        if number == 1 and first_bytes == _UTF8_BOM:
            line = line[3:]
            notice(f"{name}: byte order mark stripped")
        if line.endswith(b"\r\n"):
            line = line[:-2]
            if not seen_crlf:
                seen_crlf = True
                notice(f"{name}:{number}: line ends are CRLF: the CR is stripped from every line")
        elif line.endswith(b"\n"):
            line = line[:-1]
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            if errors == "strict":
                hint = _encoding_hint(first_bytes) if number == 1 else ""
                raise InputError(f"{name}:{number}: {_invalid(line, error)}{hint}") from None
            if not seen_invalid:
                seen_invalid = True
                notice(
                    f"{name}:{number}: {_invalid(line, error)}: "
                    "replaced by U+FFFD, here and in later lines"
                )
            yield line.decode("utf-8", "replace")


def _invalid(line: bytes, error: UnicodeDecodeError) -> str:
    return f"invalid UTF-8 (byte 0x{line[error.start]:02x} at position {error.start + 1})"


def _encoding_hint(first_bytes: bytes) -> str:
    if first_bytes.startswith(_GZIP_MAGIC):
        return ": it looks compressed; give the file a name that ends in .gz"
    if first_bytes.startswith(_UTF16_BOMS):
        return ": it looks like UTF-16; convert the file to UTF-8"
    return ""
