"""Spans of words in recordings, as files of recordings write them."""

from __future__ import annotations

import re
from typing import NamedTuple

from keras_seq.text import InputError

# The word of a span without a name.
ONLY_WORD = "word"
NO_SPANS = "-"
_SPAN = re.compile(r"(?:(?P<word>[^\s:]+):)?(?P<begin>\d+(?:\.\d*)?)-(?P<end>\d+(?:\.\d*)?)?")
_WHOLE = re.compile(r"[^\s:\d]+")


class Span(NamedTuple):
    """A word and its begin and end in seconds; the end is None at the end of the recording."""

    word: str
    begin: float
    end: float | None


def parse_spans(text: str) -> list[Span]:
    """Reads the spans of a recording, separated by spaces.

    A span is `BEGIN-END` or `WORD:BEGIN-END` in seconds, also without the end; or a word without
    digits alone, which spans the whole recording. "-" is none. Raises InputError for other text.

    Example:

    >>> parse_spans("0.5-1.2 stop:3-")
    [Span(word='word', begin=0.5, end=1.2), Span(word='stop', begin=3.0, end=None)]
    >>> parse_spans("stop"), parse_spans("-")
    ([Span(word='stop', begin=0.0, end=None)], [])
    """
    if text.strip() == NO_SPANS:
        return []
    return [_span(part, text) for part in text.split()]


def _span(part: str, text: str) -> Span:
    match = _SPAN.fullmatch(part)
    if match is None and part != NO_SPANS and _WHOLE.fullmatch(part):
        return Span(part, 0.0, None)
    if match is not None:
        end = match["end"] and float(match["end"])
        begin = float(match["begin"])
        if not isinstance(end, float) or end > begin:
            return Span(match["word"] or ONLY_WORD, begin, end or None)
    raise InputError(
        f"spans {text!r}: received {part!r}, expected WORD:BEGIN-END in seconds, or "
        f"{NO_SPANS!r} for a recording without a word"
    )
