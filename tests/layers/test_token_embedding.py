"""The tied embedding against numpy."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import TokenEmbedding
from keras_seq.layers.embedding.token_embedding import cached_output_kernels

pytestmark = pytest.mark.jax

IDS = np.array([[5, 2, 0], [9, 9, 4]], "int32")


def made(**arguments):
    layer = TokenEmbedding(10, 4, **arguments)
    layer.build((None, None))
    return layer


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@pytest.mark.parametrize(("scale", "factor"), [(True, 2.0), (False, 1.0)])
def test_token_embedding_looks_up_optionally_scaled_rows(scale, factor):
    layer = made(scale=scale)
    np.testing.assert_allclose(layer(IDS), numpy_of(layer.embeddings)[IDS] * factor, rtol=1e-6)


def test_reverse_embedding_scores_against_every_row_of_the_same_table():
    layer = made()
    vectors = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    expected = np.einsum("btu,vu->btv", vectors, numpy_of(layer.embeddings))
    np.testing.assert_allclose(layer(vectors, reverse=True), expected, atol=1e-6)
    assert len(layer.weights) == 1


def test_cached_scoring_kernels_are_computed_once_and_keep_the_logits():
    """Two layers with nested contexts, as in an ensemble."""
    turned = []

    class Counting(TokenEmbedding):
        def output_kernel(self):
            turned.append(self.name)
            return super().output_kernel()

    one, other = Counting(10, 4, name="one"), Counting(12, 4, name="other")
    vectors = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    expected = [numpy_of(layer(vectors, reverse=True)) for layer in (one, other)]
    turned.clear()
    with cached_output_kernels([one]):
        with cached_output_kernels([other]):
            for _ in range(2):
                for layer, logits in zip((one, other), expected, strict=True):
                    np.testing.assert_array_equal(layer(vectors, reverse=True), logits)
        assert turned == ["one", "other"]
        one(vectors, reverse=True)
        other(vectors, reverse=True)
    assert turned == ["one", "other", "other"]


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_under_half_precision(policy):
    layer = made(dtype=policy)
    assert keras.backend.standardize_dtype(layer(IDS).dtype) == policy.removeprefix("mixed_")
    logits = layer(layer(IDS), reverse=True)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"


def test_initial_embeddings_and_logits_have_about_unit_variance():
    keras.utils.set_random_seed(0)
    layer = TokenEmbedding(2000, 64)
    vectors = numpy_of(layer(np.arange(2000, dtype="int32")[None]))
    # Five standard errors of the standard deviation of 128,000 numbers are 0.01.
    assert abs(vectors.std() - 1) < 0.01
    assert abs(vectors.mean()) < 0.015
    unit = np.random.default_rng(0).normal(size=(1, 4, 64)).astype("float32")
    assert abs(numpy_of(layer(unit, reverse=True)).std() - 1) < 0.2


def test_token_embedding_masks_padding_and_keeps_the_mask_in_reverse():
    layer = made()
    pooled = keras.layers.GlobalAveragePooling1D()(layer(IDS))
    rows = numpy_of(layer.embeddings) * 2
    np.testing.assert_allclose(pooled[0], (rows[5] + rows[2]) / 2, atol=1e-6)
    # The reverse call passes on the mask of the vectors.
    logits = numpy_of(layer(layer(IDS), reverse=True))
    pooled = keras.layers.GlobalAveragePooling1D()(layer(layer(IDS), reverse=True))
    np.testing.assert_allclose(pooled[0], logits[0, :2].mean(axis=0), atol=1e-6)


@pytest.mark.parametrize(("vocabulary_size", "units"), [(0, 4), (10, -1), (10.0, 4), (None, 4)])
def test_invalid_embedding_sizes_raise_value_error(vocabulary_size, units):
    with pytest.raises(ValueError, match="must be a positive integer, received"):
        TokenEmbedding(vocabulary_size, units)


def test_scoring_vectors_of_another_width_raises_value_error():
    with pytest.raises(ValueError, match=r"must have 4 features, received shape \(2, 3, 5\)"):
        made()(np.zeros((2, 3, 5), "float32"), reverse=True)


def test_non_integer_ids_raise_value_error():
    with pytest.raises(ValueError, match=r"integer ids, received float32 of shape \(2, 3\)"):
        made()(IDS.astype("float32"))
