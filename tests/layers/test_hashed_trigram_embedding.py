"""Words as bags of trigrams against numpy."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import HashedTrigramEmbedding
from keras_seq.text import trigram_ids

pytestmark = pytest.mark.jax

IDS = np.array([[[5, 2, 5], [9, 0, 0], [0, 0, 0]]], "int32")


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@pytest.mark.parametrize(("reduction", "count"), [("sum", 1), ("mean", 3)])
def test_trigram_embedding_sums_or_averages_trigram_vectors(reduction, count):
    layer = HashedTrigramEmbedding(10, 4, reduction=reduction)
    got = numpy_of(layer(IDS))
    table = numpy_of(layer.embeddings)
    np.testing.assert_allclose(got[0, 0], (2 * table[5] + table[2]) / count, atol=1e-6)
    np.testing.assert_allclose(got[0, 1], table[9], atol=1e-6)
    assert (got[0, 2] == 0).all()


def test_misspelled_word_is_embedded_near_the_word():
    layer = HashedTrigramEmbedding(5000, 64)
    words = numpy_of(layer(trigram_ids([["translation", "tranzlation", "river"]], 5000)))[0]
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    # The words share eight of eleven trigrams, and random vectors hardly overlap.
    assert words[0] @ words[1] > 0.5 > words[0] @ words[2]


def test_words_without_a_trigram_are_masked():
    embedded = HashedTrigramEmbedding(10, 4)(IDS)
    pooled = keras.layers.GlobalAveragePooling1D()(embedded)
    np.testing.assert_allclose(pooled, numpy_of(embedded)[:, :2].mean(axis=1), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, 4), "`vocabulary_size` must be an integer of at least 2, received 1"),
        ((10, 0), "`units` must be an integer of at least 1, received 0"),
        ((10, 4, "max"), '"sum" or "mean", received \'max\''),
    ],
)
def test_invalid_trigram_embedding_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        HashedTrigramEmbedding(*arguments)


@pytest.mark.parametrize("inputs", [IDS[0], IDS.astype("float32")], ids=["rank", "dtype"])
def test_trigram_ids_of_wrong_rank_or_dtype_raise_value_error(inputs):
    with pytest.raises(ValueError, match=r"integer ids of shape \(batch, words, trigrams\)"):
        HashedTrigramEmbedding(10, 4)(inputs)
