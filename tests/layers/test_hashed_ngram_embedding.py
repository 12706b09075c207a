"""N-gram vectors against a plain hash function."""

import numpy as np
import pytest
from keras import ops

from keras_seq.layers import HashedNgramEmbedding

pytestmark = pytest.mark.jax

IDS = np.array([[5, 2, 900_000, 5, 2], [7, 0, 0, 0, 0]], "int32")


def row_of(ngram, rows):
    number = 0
    for token in ngram:
        number = (number * 1021 + token) % rows
    return number


@pytest.mark.parametrize(("n", "rows"), [(2, 50), (3, 50), (2, 2**20)])
def test_ngram_embedding_equals_a_lookup_of_each_ngram(n, rows):
    layer = HashedNgramEmbedding(n, rows, units=2)
    got = ops.convert_to_numpy(layer(IDS))
    table = ops.convert_to_numpy(layer.embeddings)
    for row, ids in enumerate(IDS.tolist()):
        before = [0] * (n - 1) + ids
        for step in range(len(ids)):
            expected = table[row_of(before[step : step + n], rows)]
            np.testing.assert_array_equal(got[row, step], expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, 10, 4), "`n` must be an integer of at least 2, received 1"),
        ((2, 2**20 + 1, 4), "`rows` must be at most 1,048,576, received 1048577"),
        ((2, 10, 0), "`units` must be an integer of at least 1, received 0"),
    ],
)
def test_invalid_ngram_embedding_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        HashedNgramEmbedding(*arguments)


def test_ngram_embedding_of_floats_raises_value_error():
    with pytest.raises(ValueError, match=r"integer ids of shape \(batch, steps\), received float"):
        HashedNgramEmbedding(2, 10, 4)(IDS.astype("float32"))
