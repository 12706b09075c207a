"""The word piece tokenizer, compared with KerasHub's tokenizer of pretrained encoders."""

import itertools
import json
import sys
import unicodedata

import pytest

from keras_seq.text import InputError, Tokenizer, WordPieceTokenizer, tokenizer_from_bytes

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
# All characters would take a minute, so test every 19th and those with special rules.
SAMPLE = sorted(
    {
        *range(0x20, 0x250),
        *range(0x250, 0x30000, 19),
        *(0x34F, 0x115F, 0x180B, 0x200B, 0x200D, 0x3000, 0xFE0F, 0xF900, 0x2F800, 0x2FA1D, 0x1F600),
    }
)
CHARACTERS = [
    chr(code) for code in SAMPLE if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
]
LINES = [f"a{character}b {character} {character}a" for character in CHARACTERS]


def every_piece() -> list[str]:
    """Returns a vocabulary with all characters, so that [UNK] does not hide a difference."""
    parts = {*CHARACTERS, *"".join(unicodedata.normalize("NFKD", c) for c in CHARACTERS)}
    parts |= {*"".join(part.casefold() for part in parts)}
    known = sorted(part for part in parts if unicodedata.category(part)[0] not in "ZC")
    return [*SPECIAL, "[MASK]", *known, *(f"##{part}" for part in known)]


@pytest.mark.parametrize(
    ("lowercase", "strip_accents"), [*itertools.product((False, True), repeat=2)]
)
def test_word_piece_ids_equal_keras_hub(lowercase, strip_accents):
    import keras_hub

    pieces = every_piece()
    options = {"lowercase": lowercase, "strip_accents": strip_accents}
    ours = WordPieceTokenizer(pieces, **options)
    found = [[ours.original_ids[id] for id in row] for row in ours.encode(LINES)]
    # KerasHub's method without TensorFlow gives the same ids and is fast on short lines.
    theirs = keras_hub.models.BertTokenizer(vocabulary=pieces, **options)
    expected = [list(map(int, row)) for row in theirs._tokenize_python(LINES)]
    other = [
        character
        for character, one, two in zip(CHARACTERS, found, expected, strict=True)
        if one != two
    ]
    # Only `WordPieceTokenizer` splits words at Unicode white space.
    assert {unicodedata.category(character)[0] for character in other} <= {"Z"}
    assert len(CHARACTERS) > 5000


def test_unicode_white_space_separates_words():
    tokenizer = WordPieceTokenizer([*SPECIAL, "a", "b", "##b"])
    assert tokenizer.encode(["a\u00a0b", "a\u3000b", "ab", "a b"]) == [
        [4, 5],
        [4, 5],
        [4, 6],
        [4, 5],
    ]


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(
        ["the", "[SEP]", "dog", "##s", "[CLS]", "[PAD]", ".", "[UNK]", "strasse", "cafe", "##e"],
        lowercase=True,
        strip_accents=True,
    )


def test_special_pieces_come_first(tokenizer):
    assert [tokenizer.vocabulary[place] for place in tokenizer.original_ids[:4]] == SPECIAL
    assert sorted(tokenizer.original_ids) == list(range(tokenizer.vocabulary_size))
    # The text of a line is never encoded as a special piece.
    assert tokenizer.encode(["[SEP]", "", "  ", "The dogs."]) == [[1, 1, 1], [], [], [4, 5, 6, 7]]
    assert tokenizer.encode(["x" * 101 + " \ud800"]) == [[1, 1]]


def test_word_piece_offsets_surfaces_and_decoding_match_the_text(tokenizer):
    line = "The  dogs, Straße Cafée\u0301!"
    (ids,) = tokenizer.encode([line])
    (offsets,) = tokenizer.offsets([line])
    parts = [line[begin:end] for begin, end in offsets]
    assert parts == ["The", "dog", "s", ",", "Straße", "Café", "e", "!"]
    (surfaces,) = tokenizer.surfaces([ids])
    assert "".join(surfaces) == tokenizer.decode([ids])[0] == "the dogs strasse cafee"
    assert tokenizer.decode([[0, 2, 4, 3], []]) == ["the", ""]
    with pytest.raises(ValueError, match="has 11, expected ids from 0 to 10"):
        tokenizer.decode([[11]])
    assert [piece.text for piece in tokenizer.pieces[:7]] == [*SPECIAL, "▁the", "▁dog", "s"]


def test_lone_surrogate_and_huge_word_become_single_tokens(tokenizer):
    assert tokenizer.offsets(["dog \ud800"]) == [[(0, 3), (4, 5)]]
    assert tokenizer.encode(["x" * 10**6]) == [[1]]


def test_word_piece_tokenizer_survives_a_round_trip_through_bytes(tokenizer):
    again = tokenizer_from_bytes(tokenizer.to_bytes())
    assert isinstance(again, WordPieceTokenizer)
    assert again.to_bytes() == tokenizer.to_bytes()
    assert again.encode(["The Café"]) == tokenizer.encode(["The Café"])
    other = Tokenizer.train(["a dog"], size=270)
    assert type(tokenizer_from_bytes(other.to_bytes())) is Tokenizer


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"vocabulary": "abc"},
        {"vocabulary": [*SPECIAL, 5]},
        {"vocabulary": [*SPECIAL, "a", "a"]},
        {"vocabulary": ["[PAD]", "[UNK]", "[CLS]", "a", "b"]},
        {"vocabulary": [*SPECIAL, ""]},
        {"vocabulary": [*SPECIAL, "a\nb"]},
        {"vocabulary": [*SPECIAL, "a" * 5000]},
        {"vocabulary": SPECIAL},
        {"lowercase": 1},
        {"strip_accents": None},
    ],
)
def test_invalid_word_piece_description_raises_input_error(tokenizer, change):
    stored = {**json.loads(tokenizer.to_bytes()), **change}
    with pytest.raises(InputError):
        tokenizer_from_bytes(json.dumps(stored).encode())


@pytest.mark.parametrize("content", [b"{", b"{" * sys.getrecursionlimit() * 10, b"[]", b"\xff"])
def test_invalid_json_raises_input_error(content):
    with pytest.raises(InputError):
        WordPieceTokenizer.from_bytes(content)


def test_word_piece_tokenizer_train_raises_type_error():
    with pytest.raises(TypeError, match="come with a pretrained model"):
        WordPieceTokenizer.train(["a"])
