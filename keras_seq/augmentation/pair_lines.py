"""The lines of files of training pairs."""

from __future__ import annotations

from keras_seq.text import Example


def pair_line(source: str, target: str) -> str:
    """Returns `source<TAB>target`, and a third column if `source` has features after a tab.

    >>> pair_line("walk\\tV;PST", "walked")
    'walk\\twalked\\tV;PST'
    """
    text, tab, features = source.partition("\t")
    return f"{text}\t{target.replace(chr(9), ' ')}{tab}{features}"


def line_of(example: Example) -> str:
    """Returns the line of a pair."""
    return pair_line(example.source, example.target)
