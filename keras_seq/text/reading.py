"""Lines of text files, and nothing but `\\n` ends a line.

Files are read as bytes and split on the byte 0x0A: Python's text mode also
splits on a lone CR, and `str.splitlines` on U+2028, U+0085, VT, FF and more,
so that line N of a source would no longer meet line N of its target.
"""

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal

from .errors import InputError, Notice

Errors = Literal["strict", "replace"]
Path = str | os.PathLike[str]

_UTF8_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
# Large reads: most of the time of a small-buffered gzip reader is Python calls.
_BUFFER_BYTES = 1 << 20


def read_lines(
    path: Path, *, errors: Errors = "strict", notice: Notice | None = None
) -> Iterator[str]:
    """Yield the lines of a text file, one at a time, without their line ends.

    Memory is that of the longest line. Only `\\n` ends a line; the CR of a CRLF
    and a UTF-8 byte order mark are stripped, each with one notice a file; a
    last line without a line end is a line.

    Args:
        path: A plain file, a gzip file by a name that ends in `.gz`, or `"-"`
            for standard input.
        errors: What to do with bytes that are not UTF-8: `"strict"` refuses
            the file, `"replace"` puts U+FFFD in their place, with one notice.
        notice: Called with one line of text for each thing that was mended.
            None is silent.

    Returns:
        An iterator over the lines. The file is opened when it starts.

    Raises:
        ValueError: If `errors` is neither of the two.
        InputError: While iterating, with the file and, where there is one,
            the line: missing, a directory, unreadable, a gzip file that is
            none or ends early, bytes that are not UTF-8.

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
    return _decoded(path, errors, notice or _silent)


def read_pairs(
    source: Path, target: Path, *, errors: Errors = "strict", notice: Notice | None = None
) -> Iterator[tuple[str, str]]:
    """Yield (line N of the source, line N of the target) of two parallel files.

    Args:
        source, target: Files as `read_lines` takes them; one may be `"-"`.
        errors, notice: As for `read_lines`.

    Returns:
        An iterator over pairs of lines, blank ones included.

    Raises:
        InputError: As `read_lines` does, and, after the last common line, if
            the files differ in length; the message has both counts.

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
    return _paired(source, target, errors, notice)


def read_tsv(
    path: Path,
    *,
    errors: Errors = "strict",
    notice: Notice | None = None,
    columns: str = "source and target",
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a file with `source<TAB>target` on each line.

    There is no quoting: one tab a line, and no other reading of it.

    Args:
        path, errors, notice: As for `read_lines`.
        columns: What is on either side of the tab, for messages.

    Returns:
        An iterator over pairs of strings, either of which may be blank.

    Raises:
        InputError: As `read_lines` does, and for a line that has no tab or
            more than one, with the line and the number of tabs.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "pairs.tsv"
    ...     _ = path.write_text("a dog\\tein Hund\\n")
    ...     list(read_tsv(path))
    [('a dog', 'ein Hund')]
    """
    lines = read_lines(path, errors=errors, notice=notice)
    return _split_at_tab(display_name(path), lines, columns)


def count_lines(path: Path) -> int:
    """Count the lines of a file as `read_lines` would yield them, undecoded.

    Args:
        path: A file as `read_lines` takes it.

    Returns:
        The number of lines.

    Raises:
        InputError: If the file cannot be read to its end.
    """
    return sum(1 for _ in _raw(path))


def check_readable(path: Path) -> None:
    """Refuse a file that cannot be opened, before any heavy work is begun.

    Reads the first bytes only: a file that breaks later is found by the
    reader. Standard input (`"-"`) is not touched.

    Args:
        path: A file as `read_lines` takes it.

    Raises:
        InputError: If the file is missing, a directory or unreadable, or is
            named `.gz` and does not begin as a gzip file does.
    """
    if str(path) == "-":
        return
    try:
        # A pipe, as in `<(command)`, would lose the bytes that a check reads.
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return
    except (OSError, ValueError) as error:
        raise InputError(_reason(display_name(path), error)) from None
    with _opened(path) as file, _explained(display_name(path)):
        file.read(1)


def check_same_length(source: Path, target: Path) -> None:
    """Refuse parallel files that differ in length, before any heavy work is begun.

    Nothing of standard input or of a pipe is read: `read_pairs` counts as it goes.

    Args:
        source, target: Files as `read_lines` takes them.

    Raises:
        InputError: As `check_readable` does; and with both counts if they differ.
    """
    for path in (source, target):
        check_readable(path)
    if any(str(path) == "-" or stat.S_ISFIFO(os.stat(path).st_mode) for path in (source, target)):
        return
    counts = count_lines(source), count_lines(target)
    if counts[0] != counts[1]:
        raise _unequal(source, counts[0], target, counts[1])


def _silent(message: str) -> None:
    pass


def display_name(path: Path) -> str:
    """The name of a file in messages."""
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
    """Turn what the operating system and gzip raise into one line for the user."""
    try:
        yield
    except InputError:
        raise
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
            # The gzip module takes a file of no bytes for one of no lines.
            if not file.peek(1):
                raise EOFError
        with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
            yield io.BufferedReader(unpacked, _BUFFER_BYTES)


def _raw(path: Path) -> Iterator[bytes]:
    """Yield the lines as bytes, each with the line end that it has."""
    with _opened(path) as file, _explained(display_name(path)):
        yield from file


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
                    "replaced by U+FFFD, here and wherever it comes again"
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


def _paired(
    source: Path, target: Path, errors: Errors, notice: Notice | None
) -> Iterator[tuple[str, str]]:
    source_lines = read_lines(source, errors=errors, notice=notice)
    target_lines = read_lines(target, errors=errors, notice=notice)
    count = 0
    for source_line in source_lines:
        target_line = next(target_lines, None)
        if target_line is None:
            raise _unequal(source, count + 1 + _rest(source_lines), target, count)
        count += 1
        yield source_line, target_line
    if next(target_lines, None) is not None:
        raise _unequal(source, count, target, count + 1 + _rest(target_lines))


def _rest(lines: Iterator[str]) -> int:
    return sum(1 for _ in lines)


def _unequal(source: Path, source_count: int, target: Path, target_count: int) -> InputError:
    return InputError(
        f"{display_name(source)} has {source_count} lines but {display_name(target)} has "
        f"{target_count}: line N of one must go with line N of the other"
    )


def _split_at_tab(name: str, lines: Iterator[str], columns: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        tabs = line.count("\t")
        if tabs != 1:
            found = "no tab" if tabs == 0 else f"{tabs} tabs"
            raise InputError(f"{name}:{number}: {found}, expected one between {columns}")
        source, target = line.split("\t")
        yield source, target
