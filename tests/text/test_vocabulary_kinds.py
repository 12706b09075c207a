"""Each kind of vocabulary: round trips, symbols that stay one token, and normalization."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_seq.text import (
    EOS_ID,
    InputError,
    TextRules,
    Tokenizer,
    date_pairs,
    tokenizer_from_bytes,
)

SENTENCES = [text for pair in date_pairs(300, seed=2) for text in pair] + [
    "k ʰ a",
    "kʰ aː",
    "Ğ é ½ ﬁ ２",
    "  indented",
    "가각 힣",
]
KINDS = ("unigram", "bpe", "char", "word", "byte")
SYMBOLS = ["<2de>", "+PL", "[URL]"]


def train(kind: str, **options: object) -> Tokenizer:
    return Tokenizer.train(SENTENCES, size=700, kind=kind, **options)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request) -> Tokenizer:
    return train(request.param)


def back(tokenizer: Tokenizer, line: str) -> str:
    [ids] = tokenizer.encode([line])
    assert all(EOS_ID < token < tokenizer.vocabulary_size for token in ids)
    return tokenizer.decode([ids])[0]


@given(line=st.text().filter(lambda line: line.strip()))
def test_any_line_comes_back_in_its_composed_form(tokenizer, line):
    expected = unicodedata.normalize("NFC", line).replace("\n", " ").replace("\r", " ")
    # The model uses U+FDD1 for a literal U+2581, so U+FDD1 is decoded as U+2581.
    assert back(tokenizer, line) == expected.replace("\ufdd1", "\u2581")


@pytest.mark.parametrize(
    "line", ["kʰ ½ ﬁ ２ ①", "  two  spaces ", "\tx", "▁", "a\u00a0b", "x\u3000y"]
)
def test_nothing_that_nfkc_loses_is_lost(tokenizer, line):
    assert back(tokenizer, line) == line


@given(line=st.text())
def test_composed_and_decomposed_text_have_the_same_ids(tokenizer, line):
    composed, decomposed = (unicodedata.normalize(form, line) for form in ("NFC", "NFD"))
    assert tokenizer.encode([composed]) == tokenizer.encode([decomposed])


@given(line=st.text())
def test_surfaces_of_tokens_join_to_the_decoded_line(tokenizer, line):
    ids = tokenizer.encode([line])
    assert "".join(tokenizer.surfaces(ids)[0]) == tokenizer.decode(ids)[0]


@given(line=st.text())
def test_offsets_lie_in_the_line_as_it_was_given(tokenizer, line):
    [ids], [offsets] = tokenizer.encode([line]), tokenizer.offsets([line])
    assert len(offsets) == len(ids)
    assert all(0 <= begin <= end <= len(line) for begin, end in offsets)
    assert [begin for begin, _ in offsets] == sorted(begin for begin, _ in offsets)


def test_stored_model_has_the_kind_and_its_rules(tokenizer):
    stored = tokenizer_from_bytes(tokenizer.to_bytes())
    assert stored.kind == tokenizer.kind and stored.rules == tokenizer.rules
    assert stored.encode(SENTENCES) == tokenizer.encode(SENTENCES)


def test_each_kind_cuts_its_units():
    line = "Mo é"
    pieces = {
        kind: [tokenizer.pieces[id].text for id in tokenizer.encode([line])[0]]
        for kind in ("char", "byte")
        for tokenizer in (train(kind),)
    }
    assert pieces == {
        "char": ["M", "o", "▁", "é"],
        "byte": ["<0x4D>", "<0x6F>", "<0x20>", "<0xC3>", "<0xA9>"],
    }


def test_words_are_whole_and_unknown_ones_are_spelled():
    phones = Tokenizer.train(["k ʰ a", "kʰ a"], kind="word")
    assert [phones.pieces[id].text for id in phones.encode(["kʰ a ʰ"])[0]] == ["▁kʰ", "▁a", "▁ʰ"]
    assert back(phones, "kʰ xyz a") == "kʰ xyz a"
    assert phones.vocabulary_size == 4 + 256 + 1 + 4


@pytest.mark.parametrize("separator", ["|", ", ", ".", "\\E"])
def test_words_between_other_separators(separator):
    lines = [separator.join(["a b", "c", "a"]), separator.join(["c", "a b"])]
    tokenizer = Tokenizer.train(lines, kind="word", separator=separator)
    assert list(map(len, tokenizer.encode(lines))) == [3, 2]
    assert tokenizer.decode(tokenizer.encode(lines)) == lines


@pytest.mark.parametrize("kind", KINDS)
def test_symbols_stay_one_token_wherever_they_are(kind):
    tokenizer = train(kind, symbols=SYMBOLS)
    line = "<2de> Mo+PL see[URL]now"
    ids = tokenizer.encode([line])[0]
    found = [tokenizer.pieces[id].text for id in ids if tokenizer.pieces[id].is_symbol]
    assert found == SYMBOLS
    assert tokenizer.decode([ids]) == [line]


@pytest.mark.parametrize("symbol", ["", "a b", " a", "</s>", "<0x41>", "▁", "x" * 101])
def test_impossible_symbol_is_refused(symbol):
    with pytest.raises(ValueError, match="symbols: received"):
        train("char", symbols=[symbol])


def test_most_frequent_characters_are_taken_where_the_size_is_small():
    tokenizer = Tokenizer.train(["aaaa bbb c"], kind="char", size=4 + 256 + 3)
    assert [piece.text for piece in tokenizer.pieces[260:]] == ["▁", "a", "b"]
    assert back(tokenizer, "abc") == "abc"


@pytest.mark.parametrize(
    ("kind", "known", "rare"), [("word", ["a", "b"], "c"), ("char", ["a", "b"], "c")]
)
def test_units_below_the_minimum_count_are_unknown(kind, known, rare):
    tokenizer = Tokenizer.train(["a b", "b a", "c"], kind=kind, min_count=2)
    pieces = [piece.text.strip("\u2581") for piece in tokenizer.pieces]
    assert all(unit in pieces for unit in known) and rare not in pieces


def test_minimum_count_below_1_is_refused():
    with pytest.raises(ValueError, match="min_count must be a whole number above 0, not 0"):
        train("word", min_count=0)


def test_size_without_room_for_a_unit_is_refused_with_one_that_works():
    with pytest.raises(InputError, match="at least 261"):
        Tokenizer.train(["a"], kind="char", size=260)
    assert Tokenizer.train(["a"], kind="char", size=261).vocabulary_size == 261


@pytest.mark.parametrize(
    ("options", "line", "expected"),
    [
        ({"normalization": "nfkc"}, "kʰ ２ ﬁ", "kh 2 fi"),
        ({"normalization": "none"}, "e\u0301", "e\u0301"),
        ({"normalization": "nfd"}, "e\u0301 각", "é 각"),
        ({"lowercase": True}, "ÉCOLE İΑΣ", "école i̇ας"),
        ({"keep_spaces": False}, " a  b ", "a b"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_normalization_does_what_it_says(kind, options, line, expected):
    assert back(train(kind, **options), line) == expected


def test_decomposition_makes_one_alphabet_of_syllables():
    tokenizer = Tokenizer.train(["가 각 간 나"], kind="char", normalization="nfd")
    assert tokenizer.vocabulary_size == 4 + 256 + 1 + len(
        set(unicodedata.normalize("NFD", "가각간나"))
    )
    assert back(tokenizer, "난낙") == "난낙"
    assert all(id >= 260 for id in tokenizer.encode(["난낙"])[0])


def test_spaces_are_kept_only_if_the_sentences_have_extra_ones():
    assert back(Tokenizer.train(["a b"], kind="char"), " a  b") == "a b"
    assert back(Tokenizer.train(["a b", "a  b"], kind="char"), " a  b") == " a  b"


def test_rules_of_an_unknown_form_are_refused():
    with pytest.raises(InputError, match="unknown normalization rules"):
        TextRules.from_name('keras_seq:{"kind": "char", "form": "nfq"}')
    assert TextRules.from_name("nmt_nfkc") == TextRules()
