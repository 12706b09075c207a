"""Files with one weight or one word alignment per line of a text."""

import math
import re
from collections.abc import Iterator

from .column_choice import short
from .errors import InputError, Notice
from .reading import Path, read_lines

Links = tuple[tuple[int, int], ...]

# This limit is far above any useful weight, and far below the maximum of float32.
MAX_WEIGHT = 1e9
_LINK = re.compile(r"(\d{1,6})-(\d{1,6})", flags=re.ASCII)


def read_weights(path: Path, *, notice: Notice | None = None) -> Iterator[float]:
    """Yields the numbers, from 0 to a billion, of a file with one number per line."""
    for number, line in enumerate(read_lines(path, notice=notice), 1):
        try:
            # `float` accepts Python's underscores, as in 1_000.
            weight = math.nan if "_" in line else float(line)
        except ValueError:
            weight = math.nan
        if not 0 <= weight <= MAX_WEIGHT:
            raise InputError(
                f"{path}:{number}: received {short(line)}, expected one number from 0 to "
                f"{MAX_WEIGHT:,.0f}"
            )
        yield weight


def read_alignments(path: Path, *, notice: Notice | None = None) -> Iterator[Links]:
    """Yields the word alignments of a file in Pharaoh format: `0-0 1-2 2-1` on each line.

    A link is a source word and a target word, counted from 0. A blank line has no links. The
    extension of some aligners for possible links, `0p0`, is not supported.
    """
    for number, line in enumerate(read_lines(path, notice=notice), 1):
        links = []
        for word in line.split():
            link = _LINK.fullmatch(word)
            if link is None:
                raise InputError(
                    f"{path}:{number}: received {short(word)}, expected links as in '0-0 1-2': "
                    "source word-target word, from 0"
                )
            links.append((int(link[1]), int(link[2])))
        yield tuple(links)


def check_links(where: str, links: Links, source: str, target: str) -> None:
    """Raises InputError if a link refers to a missing word. `where` is `FILE:LINE`."""
    if not links:
        return
    counts = len(source.split()), len(target.split())
    for link in links:
        for side, word, count in zip(("source", "target"), link, counts, strict=True):
            if word >= count:
                raise InputError(
                    f"{where}: {link[0]}-{link[1]} links {side} word {word}, but the {side} line "
                    f"has {count} words, counted from 0"
                )
