"""Word pieces in a graph have the same ids as in Python, for any text."""

import itertools

import pytest
from text.test_word_piece_tokenizer import LINES, every_piece

from keras_seq.text import WordPieceTokenizer

AWKWARD = ["", " ", "\u00ad", "a \u00ad\u034f b", "x" * 5000, "[SEP] ##a", "\ufe0f", "a\0b"]


@pytest.mark.parametrize(
    ("lowercase", "strip_accents"), [*itertools.product((False, True), repeat=2)]
)
def test_graph_ids_equal_those_of_the_word_piece_tokenizer(lowercase, strip_accents):
    import tensorflow as tf

    from keras_seq.serving.word_piece_graph import text_graph

    tokenizer = WordPieceTokenizer(every_piece(), lowercase=lowercase, strip_accents=strip_accents)
    lines = LINES + AWKWARD
    encode = tf.function(lambda text: text_graph(tokenizer).encode(text, 10_000, 30))
    ids, cut = encode(tf.constant([line.encode() for line in lines]))
    expected = tokenizer.encode(lines)
    found = [[int(id) for id in row if id] for row in ids.numpy()]
    assert found == [row[:30] for row in expected]
    assert cut.numpy().tolist() == [len(row) > 30 for row in expected]
