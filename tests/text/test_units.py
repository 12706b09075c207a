"""The units of the texts of recordings."""

import pytest

from keras_seq.text import LineCounter, choose_transcript_units


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        # Each of two words 30 times, alone or in longer texts.
        (["yes", "no"] * 30, "word"),
        (["yes no", "no no yes"] * 20, "word"),
        # The words occur 19 times on average.
        (["yes", "no"] * 19, "char"),
        # A closed set has at most 1,000 words.
        ([f"w{i}" for i in range(1001)] * 19, "char"),
        ([f"{i} and" for i in range(100)] * 3, "char"),
    ],
)
def test_a_closed_set_of_frequent_words_is_learned_as_words(lines, kind):
    counter = LineCounter()
    for line in lines:
        counter.add(line)
    assert choose_transcript_units(counter.statistics).kind == kind
