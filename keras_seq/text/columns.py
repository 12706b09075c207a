"""Files that go line by line with a text: numbers, and links between words."""

import math
import re
from collections.abc import Iterator, Sequence

from .errors import InputError, Notice
from .reading import Path, read_lines

Links = tuple[tuple[int, int], ...]

# Far above what makes sense, and far below where float32 ends.
MAX_WEIGHT = 1e9
_LINK = re.compile(r"(\d{1,6})-(\d{1,6})", flags=re.ASCII)


def read_weights(path: Path, *, notice: Notice | None = None) -> Iterator[float]:
    """Yield the numbers of a file with one on each line.

    Args:
        path, notice: As for `read_lines`.

    Returns:
        An iterator over floats from 0 to a billion.

    Raises:
        InputError: As `read_lines` does, and for a line that is anything else,
            with the line.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "weights.txt"
    ...     _ = path.write_text("1\\n0.25\\n")
    ...     list(read_weights(path))
    [1.0, 0.25]
    """
    for number, line in enumerate(read_lines(path, notice=notice), 1):
        try:
            # Python's own notation, 1_000, is nobody's file format.
            weight = math.nan if "_" in line else float(line)
        except ValueError:
            weight = math.nan
        if not 0 <= weight <= MAX_WEIGHT:
            raise InputError(
                f"{path}:{number}: received {_short(line)}, expected one number from 0 to "
                f"{MAX_WEIGHT:,.0f}"
            )
        yield weight


def read_alignments(path: Path, *, notice: Notice | None = None) -> Iterator[Links]:
    """Yield the links of a file in Pharaoh's format: `0-0 1-2 2-1` on each line.

    A link is source word-target word, counted from 0. A blank line has none. What
    some aligners write to tell sure links from possible ones, `0p0`, is refused.

    Args:
        path, notice: As for `read_lines`.

    Returns:
        An iterator over tuples of `(source word, target word)`.

    Raises:
        InputError: As `read_lines` does, and for a line that is anything else,
            with the line.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "links.txt"
    ...     _ = path.write_text("0-0 1-2\\n\\n")
    ...     list(read_alignments(path))
    [((0, 0), (1, 2)), ()]
    """
    for number, line in enumerate(read_lines(path, notice=notice), 1):
        links = []
        for word in line.split():
            link = _LINK.fullmatch(word)
            if link is None:
                raise InputError(
                    f"{path}:{number}: received {_short(word)}, expected links as in '0-0 1-2': "
                    "source word-target word, from 0"
                )
            links.append((int(link[1]), int(link[2])))
        yield tuple(links)


def check_links(where: str, links: Links, source: str, target: str) -> None:
    """Refuse links to words that a pair does not have.

    Args:
        where: `FILE:LINE` of the links.
        links: The links.
        source, target: The lines; words are what `str.split` finds in them.

    Raises:
        InputError: With the link and the number of words.
    """
    if not links:
        return
    counts = len(source.split()), len(target.split())
    for link in links:
        for name, word, count in zip(("source", "target"), link, counts, strict=True):
            if word >= count:
                raise InputError(
                    f"{where}: {link[0]}-{link[1]} links {name} word {word}, but the {name} line "
                    f"has {count} words, counted from 0"
                )


def in_step(names: Sequence[str], columns: Sequence[Iterator]) -> Iterator[tuple]:
    """Yield the items of several iterators together, as long as all go on.

    Args:
        names: What the iterators are called, for the message.
        columns: The iterators, at least one.

    Returns:
        An iterator over tuples.

    Raises:
        InputError: Where one ends before the first does or goes on after it, with
            both counts.
    """
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


def _unequal(first: str, first_count: int, other: str, other_count: int) -> InputError:
    return InputError(
        f"{first} has {first_count} lines but {other} has {other_count}: "
        "line N of one must go with line N of the other"
    )


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."
