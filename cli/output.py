"""Prints results to stdout and messages to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import typer

from keras_seq_cli.message_text import message_text


def notice(line: str) -> None:
    """Prints one line to stderr; see `message_text`."""
    typer.echo(message_text(line), err=True)


def emit(lines: Iterable[str]) -> None:
    """Prints results to stdout in UTF-8, independent of the locale.

    If the reader closes the pipe, as in `| head -1`, the command exits with 0.
    """
    from keras_seq.storage import named_errors

    try:
        for line in lines:
            with named_errors("standard output"):
                sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        with named_errors("standard output"):
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Redirect stdout, because the flush at the exit of Python would raise another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def check_writable(path: str) -> None:
    """Raises InputError if a file cannot be written; see `write_error`."""
    from keras_seq.text import InputError

    if error := write_error(path):
        raise InputError(error)


def write_error(path: str) -> str | None:
    """Returns an error message if a path cannot be an output file, otherwise None."""
    file = Path(path)
    if file.is_dir() or not file.absolute().parent.is_dir() or path.endswith(os.sep):
        return f"{path}: cannot be written: expected a file in an existing directory"
    return None
