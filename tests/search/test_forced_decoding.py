"""Scores of given targets against a slow numpy Transformer."""

import numpy as np
import pytest
import reference_transformer as reference
from keras import ops

from keras_seq import backend
from keras_seq.models import Transformer
from keras_seq.search import forced_scores

pytestmark = [pytest.mark.jax, pytest.mark.torch]

SOURCE = np.array([[5, 9, 4, 3], [7, 3, 0, 0], [3, 0, 0, 0]], "int32")
TARGET_INPUT = np.array([[2, 4, 4, 0, 0], [2, 11, 10, 9, 8], [2, 0, 0, 0, 0]], "int32")
TARGET_OUTPUT = np.array([[4, 4, 3, 0, 0], [11, 10, 9, 8, 3], [3, 0, 0, 0, 0]], "int32")


@pytest.fixture(scope="module")
def model():
    model = Transformer(12, 12, 1, 1, units=8, feedforward_units=10, num_heads=2)
    reference.randomize(model)
    return model


@pytest.fixture(scope="module")
def scores_of(model):
    """A compiled `forced_scores` that returns numpy arrays."""
    compiled = backend.compiled(
        lambda *arrays: forced_scores(model, *arrays), model.variables, ranks=[2, 2, 2]
    )
    return lambda *arrays: np.asarray(ops.convert_to_numpy(compiled(*arrays)))


def test_forced_scores_equal_the_log_probabilities_of_the_tokens(model, scores_of):
    logits = reference.transformer(SOURCE, TARGET_INPUT, reference.named_arrays(model), 2, "pre")
    expected = np.zeros(TARGET_OUTPUT.shape)
    for row, step in np.argwhere(TARGET_OUTPUT):
        expected[row, step] = reference.log_softmax(logits[row, step])[TARGET_OUTPUT[row, step]]
    scores = scores_of(SOURCE, TARGET_INPUT, TARGET_OUTPUT)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=2e-5)
    assert (scores[TARGET_OUTPUT == 0] == 0).all()


def test_more_padding_changes_nothing(scores_of):
    arrays = (SOURCE, TARGET_INPUT, TARGET_OUTPUT)
    padded = scores_of(*(np.pad(array, [(0, 0), (0, 3)]) for array in arrays))
    np.testing.assert_allclose(padded[:, :5], scores_of(*arrays), atol=2e-5)
    assert (padded[:, 5:] == 0).all()
