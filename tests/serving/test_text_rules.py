"""Each kind of vocabulary returns the same ids and text in a graph and in Python."""

import random

import pytest
import tensorflow as tf

from keras_seq.serving.text_graph import TextGraph
from keras_seq.text import Tokenizer, date_pairs

SENTENCES = [text for pair in date_pairs(200, seed=6) for text in pair] + ["k ʰ a", "  x  y", "각"]
ALPHABET = "ab k\u0301é\u2581\u0325ʰΣΑς İ\t\n\u3000|[URL]<2de>日각\u1100\u1161\0\u00a0A1"
GENERATOR = random.Random(3)
LINES = SENTENCES[:40] + [
    "".join(GENERATOR.choices(ALPHABET, k=GENERATOR.randrange(14))) for _ in range(600)
]


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "unigram", "size": 600},
        {"kind": "bpe", "size": 600, "normalization": "nfkc"},
        {"kind": "char"},
        {"kind": "char", "normalization": "nfd", "symbols": ["[URL]", "<2de>"]},
        {"kind": "word"},
        {"kind": "word", "separator": "|", "lowercase": True},
        {"kind": "word", "separator": " | "},
        {"kind": "byte", "normalization": "none", "lowercase": True},
        {"kind": "unigram", "size": 600, "symbols": ["[URL]"], "keep_spaces": False},
        {"kind": "unigram", "size": 600, "normalization": "nfd", "lowercase": True},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_graph_encodes_and_decodes_as_the_tokenizer_does(options):
    tokenizer = Tokenizer.train(SENTENCES, **options)

    @tf.function
    def encode(text):
        return TextGraph(tokenizer).encode(text, 1000, 1000)[0]

    @tf.function
    def decode(ids):
        return TextGraph(tokenizer).decode(ids)

    expected = tokenizer.encode(LINES)
    rows = encode(tf.constant(LINES)).numpy().tolist()
    assert [[id for id in row if id] for row in rows] == expected
    ids = tf.ragged.constant(expected, dtype=tf.int32).to_tensor(0)
    assert [text.decode() for text in decode(ids).numpy()] == tokenizer.decode(expected)
