"""Attention as a map of shades on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

_MOST = 14
# From white, or black on black, to blue.
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
    """Prints a row for each token of the translation, a column for each of the source.

    Args:
        console: Where to; shades are colours where it has them, characters elsewhere.
        title: Comes first.
        source, target: Names of the columns and of the rows.
        weights: A row for each of the target, a number for each of the source.
    """
    left = max([cell_len(_cut(name)) for name in target], default=0) + 1
    room = max((console.width - left) // _CELL, 1)
    coloured = console.color_system is not None
    lines: list[list[Segment]] = [[Segment(title)]]
    # As many columns as the terminal is wide, the others below.
    for start in range(0, len(source), room):
        columns = slice(start, start + room)
        lines += ([Segment(" " * left), *row] for row in _head(source[columns]))
        for name, row in zip(target, weights, strict=True):
            text = _cut(name)
            label = Segment(" " * (left - 1 - cell_len(text)) + text + " ")
            lines.append([label, *(_square(value, coloured) for value in row[columns])])
        lines.append([])
    for line in lines:
        console.print(Segments([*line, Segment.line()]), end="", soft_wrap=True)


def _head(names: Sequence[str]) -> Iterator[list[Segment]]:
    """Names from top to bottom, so that a column is as narrow as a character."""
    cut = [_cut(name) for name in names]
    height = max(map(len, cut))
    for line in range(height):
        yield [Segment(_padded(name.rjust(height)[line])) for name in cut]


def _square(value: float, coloured: bool) -> Segment:
    if not coloured:
        return Segment(_SHADES[round(value * (len(_SHADES) - 1))] * _CELL)
    mixed = (round(a + (b - a) * value) for a, b in zip(_LIGHT, _DARK, strict=True))
    return Segment(" " * _CELL, Style(bgcolor="#" + "".join(f"{part:02x}" for part in mixed)))


def _padded(character: str) -> str:
    # What joins with its neighbour has no width of its own.
    return character + " " * (_CELL - cell_len(character))


def _cut(name: str) -> str:
    shown = "".join(character if character.isprintable() else "\ufffd" for character in name)
    return shown if len(shown) <= _MOST else shown[: _MOST - 1] + "…"
