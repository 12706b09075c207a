"""Lines with a label each, or with a tag for each word."""

from __future__ import annotations

from collections.abc import Iterator

from .column_choice import LABELLED, TAGGED
from .errors import InputError, Notice
from .reading import Path, display_name
from .tables import numbered_pairs
from .tagged_words import words_of


def read_labelled(
    path: Path,
    *,
    tagged: bool = False,
    columns: str | None = None,
    notice: Notice | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield the texts of a file with a text and its label on each line, and their labels.

    The file is read as `read_table` reads it: `text<TAB>label` lines, CSV, or chosen columns.

    Args:
        path, notice: As for `read_table`.
        tagged: Whether there is a tag for each word, parted by spaces, in place of a label.
        columns: The columns to read, as `"text=2,label=1"`, or `"text=1,tags=3"` where tagged.

    Returns:
        An iterator over pairs of a text and a label without white space around it, or tags
        with one space between two; either may be "".

    Raises:
        InputError: As `read_table` does; and for another number of tags than of words, with
            the line.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tagged.tsv"
    ...     _ = path.write_text("a dog runs\\tDET NOUN VERB\\n")
    ...     list(read_labelled(path, tagged=True))
    [('a dog runs', 'DET NOUN VERB')]
    """
    roles = TAGGED if tagged else LABELLED
    for number, text, label in numbered_pairs(path, columns=columns, roles=roles, notice=notice):
        if not tagged:
            yield text, label.strip()
            continue
        words, tags = words_of(text), words_of(label)
        if len(words) != len(tags):
            raise InputError(
                f"{display_name(path)}:{number}: {len(words)} words and {len(tags)} tags, expected "
                "a tag for each word, parted by spaces"
            )
        yield text, " ".join(tags)
