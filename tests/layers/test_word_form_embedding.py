"""Word forms against a plain computation of affixes and shapes."""

import unicodedata

import numpy as np
import pytest
from keras import ops

from keras_seq.layers import WordFormEmbedding
from keras_seq.text import word_characters

WORDS = ["Dog", "x", "McDonald's", "3rd", "ÉCOLES", "straße", "東京", "a😀", "İx", "-", ""]


def kind(character):
    if ord(character) >= 0x3000:
        return 2 if ord(character) < 0x1F000 else 5
    category = unicodedata.category(character)
    return 1 if category == "Lu" else {"L": 2, "M": 2, "N": 3, "P": 4}.get(category[0], 5)


def lowered(character):
    return character.lower() if len(character.lower()) == 1 else character


def padded(values, count, at_end):
    zeros = [0] * (count - len(values))
    return zeros + values if at_end else values + zeros


def features(word, max_affix):
    """The numbers of each feature: beginnings and endings of 1 to N characters, and the shape."""
    points = [ord(lowered(c)) for c in word]
    kinds = [kind(c) for c in word]
    affixes = range(1, max_affix + 1)
    yield from (padded(points[:n], n, at_end=False) for n in affixes)
    yield from (padded(points[-n:], n, at_end=True) for n in affixes)
    yield padded(kinds[:4], 4, at_end=False) + padded(kinds[-4:], 4, at_end=True)


def row_of(numbers, rows):
    row = 0
    for number in numbers:
        row = (row * 1021 + number) % rows
    return row


@pytest.mark.parametrize(("rows", "max_affix"), [(37, 3), (2**20, 1), (1000, 5)])
def test_word_form_embedding_equals_lookups_of_affixes_and_shape(rows, max_affix):
    layer = WordFormEmbedding(rows=rows, units=2, max_affix=max_affix)
    got = ops.convert_to_numpy(layer(np.array([[word_characters(word) for word in WORDS]])))[0]
    table = ops.convert_to_numpy(layer.embeddings)
    for word, vector in zip(WORDS, got, strict=True):
        expected = np.concatenate(
            [
                table[i * rows + row_of(numbers, rows)]
                for i, numbers in enumerate(features(word, max_affix))
            ]
        )
        np.testing.assert_array_equal(vector, expected if word else 0 * expected)


def test_words_without_characters_are_masked():
    layer = WordFormEmbedding(rows=10, units=2, max_affix=1)
    mask = layer.compute_mask(np.array([[word_characters("a"), word_characters("")]]))
    assert ops.convert_to_numpy(mask).tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rows": 1}, "`rows` must be an integer of at least 2, received 1"),
        ({"rows": 2**20 + 1}, "`rows` must be at most 1,048,576"),
        ({"max_affix": 0}, "`max_affix` must be an integer of at least 1, received 0"),
    ],
)
def test_invalid_word_form_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        WordFormEmbedding(**arguments)


@pytest.mark.parametrize("count", [5, 6])
def test_characters_of_unsuitable_number_raise_value_error(count):
    with pytest.raises(ValueError, match="an even number of characters, at least 8, received"):
        WordFormEmbedding(max_affix=4)(np.zeros((1, 2, count), "int32"))
