"""Tables that are readable in a terminal and valid Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def show(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table; the first column contains names, the other columns numbers."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    print(_line(head, widths))
    marks = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    print(_line(marks, widths))
    for row in rows:
        print(_line(row, widths))
    print(flush=True)


def digits(figure: float) -> str:
    """Formats a number as an integer, or with three significant digits below 100."""
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.3g}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return f"| {' | '.join([first, *rest])} |"
