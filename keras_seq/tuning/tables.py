"""Tables for the terminal and for files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from keras_seq.storage import write_file
from keras_seq.tuning.outcome import Outcome

Rows = Sequence[Sequence[str]]


def write_table(path: Path, rows: Rows) -> None:
    """Writes rows as lines with tabs."""
    lines = ("\t".join(" ".join(cell.split()) for cell in row) for row in rows)
    write_file(path, "".join(f"{line}\n" for line in lines).encode())


def score_columns(metric: str) -> list[str]:
    """Returns the headers of the columns of `score_cells`."""
    return [metric or "score"] if metric == "loss" else [metric or "score", "loss"]


def score_cells(metric: str, outcome: Outcome) -> list[str]:
    """Returns the value of the monitor, and the loss unless that is the monitor."""
    loss = "" if outcome.loss is None else f"{outcome.loss:.4f}"
    return [outcome.score] if metric == "loss" else [outcome.score, loss]


def aligned(rows: Rows) -> Iterator[str]:
    """Yields rows with columns of equal width, the last column to the left and others to the right.

    Example:

    >>> [*aligned([["trial", "state"], ["1", "best"]])]
    ['trial  state', '    1  best']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *cells, last in rows:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=False))
        yield "  ".join([*padded, last]).rstrip()
