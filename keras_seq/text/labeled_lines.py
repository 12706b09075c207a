"""Reads lines with a label, or with one tag per word."""

from __future__ import annotations

from collections.abc import Iterator

from .column_choice import LABELED, TAGGED
from .errors import InputError, Notice
from .reading import Path, display_name
from .tables import numbered_pairs
from .tagged_words import words_of


def read_labeled(
    path: Path, *, tagged: bool = False, columns: str | None = None, notice: Notice | None = None
) -> Iterator[tuple[str, str]]:
    """Yields the texts and labels of a file with one text and its label per line.

    The file has a format of `read_table`: `text<TAB>label` lines, CSV, or selected `columns`, such
    as `"text=2,label=1"`. If `tagged`, the second column, `tags`, has one tag per word, and the
    yielded tags are separated by single spaces. Text and label may be empty. Raises InputError like
    `read_table`, and if the numbers of words and tags differ.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tagged.tsv"
    ...     _ = path.write_text("a dog runs\\tDET NOUN VERB\\n")
    ...     list(read_labeled(path, tagged=True))
    [('a dog runs', 'DET NOUN VERB')]
    """
    roles = TAGGED if tagged else LABELED
    for number, text, label in numbered_pairs(path, columns, roles, notice):
        if not tagged:
            yield text, label.strip()
            continue
        words, tags = words_of(text), words_of(label)
        if len(words) != len(tags):
            raise InputError(
                f"{display_name(path)}:{number}: {len(words)} words and {len(tags)} tags, expected "
                "one tag per word, separated by spaces"
            )
        yield text, " ".join(tags)
