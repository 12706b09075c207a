"""Where words go: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import typer


def notice(line: str) -> None:
    """Prints one line to stderr."""
    typer.echo(line, err=True)


def emit(lines: Iterable[str]) -> None:
    """Prints results, in UTF-8 whatever the locale; silent if nobody reads on.

    A reader that has gone (`| head -1`) has what it wanted: the command ends
    with 0.
    """
    try:
        for line in lines:
            sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def why_not_written(path: str) -> str | None:
    """What is wrong with the name of a file to write, None where it can be tried."""
    file = Path(path)
    if file.is_dir() or not file.absolute().parent.is_dir() or path.endswith(os.sep):
        return f"{path}: cannot be written: not a file in a directory that exists"
    return None
