"""Tokens of sources with features: ids, text and spans, storage, and what is unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_seq.text import (
    FeatureTokenizer,
    InputError,
    Labels,
    Tokenizer,
    tokenizer_from_bytes,
)

LETTERS = Tokenizer.train(["walk talk", "ä ö ü"], kind="char")
NAMES = ["3", "PST", "V"]
TOKENIZER = FeatureTokenizer(LETTERS, Labels(NAMES))
FIRST = LETTERS.vocabulary_size


def test_features_follow_the_source_and_unknown_ones_share_an_id():
    lines = ["walk\tV;PST", "walk\tPST; V ;", "walk\tFUT;3", "walk", " \tV"]
    source = LETTERS.encode(["walk"])[0]
    assert TOKENIZER.encode(lines) == [
        [*source, FIRST + 3, FIRST + 2],
        [*source, FIRST + 2, FIRST + 3],
        [*source, FIRST, FIRST + 1],
        source,
        [],
    ]
    assert TOKENIZER.vocabulary_size == FIRST + 4 == len(TOKENIZER.pieces)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r;\u2581"), max_size=12)


@given(TEXT, st.lists(st.sampled_from(NAMES), max_size=3))
def test_line_with_known_features_comes_back(source, names):
    (expected,) = LETTERS.decode(LETTERS.encode([source]))
    line = f"{source}\t{';'.join(names)}" if names else source
    (ids,) = TOKENIZER.encode([line])
    (found,) = TOKENIZER.decode([ids])
    if LETTERS.encode([source])[0]:
        assert found == (f"{expected}\t{';'.join(names)}" if names else expected)
    else:
        assert found == ""
    assert "".join(TOKENIZER.surfaces([ids])[0]) == found


def test_spans_of_features_lie_in_the_line():
    line = "talk\tV; PST;V"
    spans = TOKENIZER.offsets([line])[0]
    assert [line[begin:end] for begin, end in spans] == ["t", "a", "l", "k", "V", "PST", "V"]


def test_stored_tokenizer_is_the_same():
    again = tokenizer_from_bytes(TOKENIZER.to_bytes())
    assert isinstance(again, FeatureTokenizer) and again.to_bytes() == TOKENIZER.to_bytes()
    assert again.encode(["walk\tV;X"]) == TOKENIZER.encode(["walk\tV;X"])
    other = FeatureTokenizer(LETTERS, Labels(NAMES), separator="|")
    assert tokenizer_from_bytes(other.to_bytes()).split("a\tV|3") == ("a", ["V", "3"])


@pytest.mark.parametrize(
    "head",
    [
        b'{"format": "keras-seq features, format 1"}',
        b'{"format": "keras-seq features, format 1", "separator": ";", "features": [1]}',
        b'{"format": "keras-seq features, format 1", "separator": "", "features": ["V"]}',
        b'{"format": "keras-seq features, format 1", "separator": ";", "features": ["V", "V"]}',
        b'{"format": "keras-seq features, format 1", "separator": ";", "features": [',
    ],
)
def test_damaged_tokenizer_raises_input_error(head):
    with pytest.raises(InputError):
        tokenizer_from_bytes(head + b"\n" + LETTERS.to_bytes())
    with pytest.raises(InputError):
        tokenizer_from_bytes(TOKENIZER.to_bytes()[:-50])


def test_missing_and_unknown_features_are_described():
    assert TOKENIZER.notice_of(["walk\tV", ""]) is None
    assert TOKENIZER.notice_of(["walk", "talk\tV"]) == "1 without features after a tab"
    expected = "the feature 'FUT' and 1 more is not in the training text"
    assert TOKENIZER.notice_of(["walk\tFUT;V;NOM", "talk\tFUT"]) == expected


def test_a_tokenizer_with_features_is_not_trained():
    with pytest.raises(TypeError, match="train a Tokenizer of the source"):
        FeatureTokenizer.train(["a"])
    with pytest.raises(TypeError, match="not one string"):
        TOKENIZER.encode("walk")
