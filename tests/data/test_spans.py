"""Spans of words in recordings."""

import pytest

from keras_seq.data import parse_spans
from keras_seq.text import InputError


def test_spans_have_a_word_a_begin_and_an_end():
    assert parse_spans(" 0.5-1  stop:3.25-4. hey_you:7- ") == [
        ("word", 0.5, 1.0),
        ("stop", 3.25, 4.0),
        ("hey_you", 7.0, None),
    ]
    assert parse_spans("stop go") == [("stop", 0.0, None), ("go", 0.0, None)]
    assert parse_spans("-") == []


@pytest.mark.parametrize(
    "text", ["0,5-1", "stop:1", "2-1", "1-1", "a:b:1-2", "- 1-2", "1-2-3", "stop2", ":1-2"]
)
def test_other_text_is_no_span(text):
    with pytest.raises(InputError, match=r"spans .*: received .*, expected WORD:BEGIN-END"):
        parse_spans(text)
