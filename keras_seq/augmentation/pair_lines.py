"""The lines of files of training pairs."""

from __future__ import annotations

from keras_seq.text import Example


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


def line_of(example: Example) -> str:
    """Returns the line of a pair."""
    return pair_line(example.source, example.target)


def without_tabs(text: str) -> str:
    """Returns a text with a space for each tab, which would end its column."""
    return text.replace("\t", " ")


def columns_of(third: str) -> str:
    """Returns the option that reads pairs with a third column of features or target languages."""
    return f"--columns source=1,target=2,{third}=3"
