"""Tokenization inside a graph equals SentencePiece in Python."""

import numpy as np
import pytest

from keras_seq.text import WORD_CHARACTERS, Tokenizer, word_tokens
from keras_seq.text.dates import date_pairs

NASTY = [
    "",
    " \t ",
    "A dog  runs.",
    "é e\u0301 ½ ﬁ Ⅳ",
    "😀 漢字 ✈\ufe0f \u200b x",
    "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg",
    "a\nb\r\nc",
    "nul \x00 inside",
    "<s> </s> <pad> <unk> <0x41>",
    "▁ low line ▁▁",
    "\ufeffmark",
    "x" * 700,
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([line for pair in date_pairs(300) for line in pair], size=500)


@pytest.fixture(scope="module")
def graph(tokenizer):
    from keras_seq.serving.text_graph import TextGraph

    return TextGraph(tokenizer)


def encoded(graph, lines, max_characters=10_000, max_tokens=1000):
    ids, cut = graph.encode([line.encode() for line in lines], max_characters, max_tokens)
    return [[int(i) for i in row if i] for row in ids.numpy()], cut.numpy().tolist()


def test_graph_ids_equal_those_of_the_tokenizer(graph, tokenizer):
    lines = NASTY + [source for source, _ in date_pairs(200, seed=5)]
    ids, cut = encoded(graph, lines)
    assert ids == tokenizer.encode(lines)
    assert not any(cut)


def test_encoding_an_empty_batch_gives_no_rows(graph):
    ids, cut = graph.encode(np.zeros((0,), object), 10, 10)
    assert ids.shape[0] == cut.shape[0] == 0


def test_truncation_by_characters_or_tokens_is_reported(graph, tokenizer):
    lines = ["a b c d e f", "ab", "😀😀😀", "x"]
    ids, cut = encoded(graph, lines, max_characters=3)
    assert ids == tokenizer.encode([line[:3] for line in lines])
    assert cut == [True, False, False, False]
    ids, cut = encoded(graph, lines, max_tokens=3)
    assert ids == [row[:3] for row in tokenizer.encode(lines)]
    assert cut == [len(row) > 3 for row in tokenizer.encode(lines)]


def test_invalid_bytes_count_as_the_replacement_character(graph, tokenizer):
    broken = [b"a \xff\xfe b", b"\xe2\x82", b"ok \xf0\x9f\x98", b"\xed\xa0\x80"]
    ids, _ = graph.encode(broken, 100, 100)
    expected = tokenizer.encode([text.decode(errors="replace") for text in broken])
    assert [[int(i) for i in row if i] for row in ids.numpy()] == expected


def test_graph_decodes_random_ids_as_the_tokenizer_does(graph, tokenizer):
    generator = np.random.default_rng(0)
    # Random ids, rows of random byte pieces, and end tokens at random positions.
    ids = generator.integers(0, tokenizer.vocabulary_size, (300, 12)).astype("int32")
    ids[100:200] = generator.integers(4, 260, (100, 12))
    ids[generator.random(ids.shape) < 0.2] = 3
    found = [text.decode() for text in graph.decode(ids).numpy()]
    assert found == tokenizer.decode(ids)


def test_unusual_text_round_trips_as_with_the_tokenizer(graph, tokenizer):
    ids, _ = graph.encode([line.encode() for line in NASTY], 10_000, 1000)
    found = [text.decode() for text in graph.decode(ids).numpy()]
    assert found == tokenizer.decode(tokenizer.encode(NASTY))


def test_ids_beyond_the_vocabulary_are_dropped(graph, tokenizer):
    row = tokenizer.encode(["12 May"])[0]
    beyond = np.array([[tokenizer.vocabulary_size, *row, 2**31 - 1, -5]], "int32")
    assert graph.decode(beyond).numpy().tolist() == [tokenizer.decode([row])[0].encode()]


@pytest.mark.parametrize("whole_words", [False, True])
def test_graph_characters_equal_those_of_python(graph, tokenizer, whole_words):
    lines = [*NASTY, "Internationalization of 12345678 123456789 words"]
    texts = [line.encode() for line in lines]
    ids, begins, characters, _ = graph.encode_words(texts, 10_000, 999, whole_words)
    for row, tokens in enumerate(word_tokens(tokenizer, lines, whole_words=whole_words)):
        count = len(tokens.ids)
        assert ids[row, :count].numpy().tolist() == tokens.ids
        assert np.flatnonzero(begins[row].numpy()).tolist() == tokens.begins
        expected = np.reshape(tokens.characters(), (count, WORD_CHARACTERS))
        np.testing.assert_array_equal(characters[row, :count].numpy(), expected)
        assert not characters[row, count:].numpy().any()
