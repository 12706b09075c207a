"""Word vectors from characters, against numpy."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import CharacterConvolution

# A long word, a word shorter than the widest window, a word of one letter, and no word.
WORDS = np.array([[[5, 2, 5, 7, 3], [9, 4, 0, 0, 0], [6, 0, 0, 0, 0], [0, 0, 0, 0, 0]]], "int32")


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def made(**arguments):
    arguments = {"embedding_units": 3, "widths": (1, 2, 4), "filters": (2, 3, 4), **arguments}
    layer = CharacterConvolution(10, **arguments)
    layer.build((None, None, None))
    for index, weight in enumerate(layer.weights):
        weight.assign(np.random.default_rng([1, index]).normal(size=weight.shape))
    return layer


def by_numpy(layer, word):
    """One word, given as the list of its characters."""
    vectors = numpy_of(layer.embeddings).astype("float64")[word]
    found = []
    for convolution in layer.convolutions:
        kernel, bias = map(numpy_of, convolution.weights)
        width = len(kernel)
        behind = np.concatenate([vectors, np.zeros((width - 1, vectors.shape[1]))])
        windows = [np.tanh(np.einsum("we,wef->f", behind[place : place + width], kernel) + bias)
                   for place in range(len(word))]  # fmt: skip
        found.append(np.max(windows, axis=0))
    outputs = np.concatenate(found)
    for hidden, gate in layer.highways:
        (w, b), (w_gate, b_gate) = map(numpy_of, hidden.weights), map(numpy_of, gate.weights)
        opened = 1 / (1 + np.exp(-(outputs @ w_gate + b_gate)))
        outputs = opened * np.maximum(outputs @ w + b, 0) + (1 - opened) * outputs
    return outputs


@pytest.mark.parametrize("num_highway_layers", [0, 2])
def test_character_convolution_equals_numpy_word_by_word(num_highway_layers):
    layer = made(num_highway_layers=num_highway_layers)
    got = numpy_of(layer(WORDS))
    assert got.shape == (1, 4, 9)
    for place, length in enumerate((5, 2, 1)):
        expected = by_numpy(layer, WORDS[0, place, :length])
        np.testing.assert_allclose(got[0, place], expected, atol=1e-5)
    assert (got[0, 3] == 0).all()


def test_more_character_padding_changes_no_word_vector():
    layer = made()
    wider = np.pad(WORDS, [(0, 0), (0, 0), (0, 6)])
    np.testing.assert_allclose(numpy_of(layer(wider)), numpy_of(layer(WORDS)), atol=1e-6)


def test_words_without_a_character_are_masked():
    layer = made()
    embedded = layer(WORDS)
    pooled = keras.layers.GlobalAveragePooling1D()(embedded)
    np.testing.assert_allclose(pooled, numpy_of(embedded)[:, :3].mean(axis=1), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"widths": (1, 2)}, r"one number for each convolution, received \[1, 2\] and \[2, 3, 4\]"),
        ({"widths": (1, 0, 2)}, "`widths` must be an integer of at least 1, received 0"),
        ({"filters": (1, 2, 2.0)}, "`filters` must be an integer of at least 1, received 2.0"),
        ({"embedding_units": 0}, "`embedding_units` .* received 0"),
        ({"num_highway_layers": -1}, "at least 0, received -1"),
    ],
)
def test_invalid_character_convolution_arguments_raise_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        made(**arguments)


@pytest.mark.parametrize("inputs", [WORDS[0], WORDS.astype("float32")], ids=["rank", "dtype"])
def test_character_ids_of_wrong_rank_or_dtype_raise_value_error(inputs):
    with pytest.raises(ValueError, match=r"integer ids of shape \(batch, words, characters\)"):
        made()(inputs)
