"""Prints attention weights as a heat map on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

_MAX_LENGTH = 14
# Colors of weight 0 (almost white) and weight 1 (blue).
_LIGHT, _DARK = (235, 238, 242), (20, 82, 180)
_SHADES = " ░▒▓█"
_CELL = 2


def print_map(
    console: Console,
    title: str,
    source: Sequence[str],
    target: Sequence[str],
    weights: Sequence[Sequence[float]],
) -> None:
    """Prints a heat map with one row per target token and one column per source token.

    Args:
        console: Prints the map, in color if supported, otherwise with block characters.
        title: Title above the map.
        source, target: The tokens.
        weights: Shape `(target, source)`, values from 0 to 1.
    """
    margin = max([cell_len(_cut(name)) for name in target], default=0) + 1
    room = max((console.width - margin) // _CELL, 1)
    colored = console.color_system is not None
    lines: list[list[Segment]] = [[Segment(title)]]
    # If the map is wider than the terminal, print groups of columns below each other.
    for start in range(0, len(source), room):
        columns = slice(start, start + room)
        lines += ([Segment(" " * margin), *row] for row in _header(source[columns]))
        for name, row in zip(target, weights, strict=True):
            text = _cut(name)
            label = Segment(" " * (margin - 1 - cell_len(text)) + text + " ")
            lines.append([label, *(_square(value, colored) for value in row[columns])])
        lines.append([])
    for line in lines:
        console.print(Segments([*line, Segment.line()]), end="", soft_wrap=True)


def _header(names: Sequence[str]) -> Iterator[list[Segment]]:
    """Yields the lines of the header, with vertical column names to save space."""
    short = [_cut(name) for name in names]
    height = max(map(len, short))
    for line in range(height):
        yield [Segment(_padded(name.rjust(height)[line])) for name in short]


def _square(value: float, colored: bool) -> Segment:
    if not colored:
        return Segment(_SHADES[round(value * (len(_SHADES) - 1))] * _CELL)
    mixed = (round(a + (b - a) * value) for a, b in zip(_LIGHT, _DARK, strict=True))
    return Segment(" " * _CELL, Style(bgcolor="#" + "".join(f"{part:02x}" for part in mixed)))


def _padded(character: str) -> str:
    # `cell_len` is 0 for combining characters and 2 for wide characters.
    return character + " " * (_CELL - cell_len(character))


def _cut(name: str) -> str:
    text = "".join(character if character.isprintable() else "\ufffd" for character in name)
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"
