"""The lines of files of training pairs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from keras_seq.storage import TEMPORARY
from keras_seq.text import InputError

# The end of what a command that makes pairs says.
HELD_OUT_ADVICE = (
    "to train on them, name validation files, or else some of these pairs may be held out to "
    "validate on"
)


def pair_line(source: str, target: str, language: str | None = None) -> str:
    """Returns `source<TAB>target` and a third column, if there is something to put into it.

    Args:
        source: The source; features may follow after a tab, and are the third column.
        target: The target. A tab in it becomes a space.
        language: The target language, which is the third column; None for no such column.

    >>> pair_line("walk\\tV;PST", "walked")
    'walk\\twalked\\tV;PST'
    >>> pair_line("a dog", "ein Hund", "de")
    'a dog\\tein Hund\\tde'
    """
    text, tab, features = source.partition("\t")
    end = f"{tab}{features}" if language is None else f"\t{language}"
    return f"{text}\t{without_tabs(target)}{end}"


def without_tabs(text: str) -> str:
    """Returns a text with a space for each tab, which would end its column."""
    return text.replace("\t", " ")


def before_source(tag: str) -> str:
    """Returns what a tag puts before each source. Raises InputError if it would end the column."""
    if any(character in tag for character in "\t\r\n"):
        raise InputError(f"tag: received {tag[:60]!r}, expected text without tabs and line breaks")
    return f"{tag} " if tag else ""


def check_output(path: Path, inputs: Iterable[str], *, overwrite: bool) -> None:
    """Raises InputError if a file of pairs exists or would replace what it is made of."""
    if any(path.absolute() == Path(name).absolute() for name in inputs):
        raise InputError(f"{path}: would replace the text it is made of: name another file")
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; --overwrite replaces it")


def job_folder(output: Path, *names: str) -> Path:
    """Returns the folder with the finished parts of a file of pairs; who makes the file deletes it.

    Args:
        output: The file of pairs.
        names: The files and folders that an interrupted job may have left in it.

    Raises:
        InputError: If the folder is a link or a file, or has anything else in it.
    """
    folder = output.with_name(f"{output.name}.job")
    is_other = folder.is_symlink() or (folder.exists() and not folder.is_dir())
    found = [] if is_other or not folder.exists() else sorted(os.listdir(folder))
    others = [name for name in found if name not in names and not name.startswith(TEMPORARY)]
    if is_other or others:
        raise InputError(
            f"{folder / others[0] if others else folder}: in the way of this job, which would "
            "delete it: move it, or name another output"
        )
    return folder


def columns_of(third: str) -> str:
    """Returns the option that reads pairs with a third column of features or target languages."""
    return f"--columns source=1,target=2,{third}=3"
