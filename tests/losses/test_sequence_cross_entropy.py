"""Cross-entropy loss against float64 numpy, and its gradient against finite differences."""

import json

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops

from keras_seq.losses import SequenceCrossEntropy
from keras_seq.losses.sequence_cross_entropy import ComparableCrossEntropy

pytestmark = [pytest.mark.jax, pytest.mark.torch]

TRUE = np.array([[4, 1, 8, 0], [2, 0, 0, 0], [7, 7, 3, 1]], "int32")
LOGITS = 5 * np.random.default_rng(0).normal(size=(3, 4, 9)).astype("float32")
WEIGHTS = np.random.default_rng(1).uniform(0.1, 2, size=(3, 4)).astype("float32")


def expected_loss(true, logits, smoothing=0.0, weights=None):
    """Mean over real tokens, computed token by token in float64."""
    total = counted = 0.0
    for row, step in np.argwhere(true):
        scores = logits[row, step].astype("float64")
        log_probabilities = scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()
        target = np.full(len(scores), smoothing / len(scores))
        target[true[row, step]] += 1 - smoothing
        weight = 1.0 if weights is None else weights[row, step]
        total -= weight * (target * log_probabilities).sum()
        counted += weight
    return total / counted if counted else 0.0


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_sequence_cross_entropy_equals_float64_numpy(smoothing, weights):
    loss = SequenceCrossEntropy(smoothing)(TRUE, LOGITS, sample_weight=weights)
    np.testing.assert_allclose(loss, expected_loss(TRUE, LOGITS, smoothing, weights), rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_sequence_cross_entropy_gradient_equals_finite_differences(smoothing, weights):
    loss = SequenceCrossEntropy(smoothing)
    (gradient,), _ = gradients(lambda logits: loss(TRUE, logits, weights), [LOGITS])
    numeric = np.zeros(LOGITS.shape)
    for place in np.ndindex(*LOGITS.shape):
        nearby = [LOGITS.astype("float64"), LOGITS.astype("float64")]
        nearby[0][place] += 1e-5
        nearby[1][place] -= 1e-5
        above, below = (expected_loss(TRUE, logits, smoothing, weights) for logits in nearby)
        numeric[place] = (above - below) / 2e-5
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    assert not gradient[TRUE == 0].any()


def test_loss_without_smoothing_equals_keras_sparse_cross_entropy():
    theirs = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    np.testing.assert_allclose(
        SequenceCrossEntropy()(TRUE, LOGITS), theirs(TRUE, LOGITS), rtol=1e-5
    )


def test_loss_with_smoothing_equals_keras_on_one_hot_targets():
    full = np.where(TRUE == 0, 5, TRUE)
    theirs = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)
    np.testing.assert_allclose(
        SequenceCrossEntropy(0.2)(full, LOGITS),
        theirs(np.eye(9, dtype="float32")[full], LOGITS),
        rtol=1e-5,
    )


def test_loss_of_equal_logits_is_the_log_of_the_vocabulary_size():
    loss = SequenceCrossEntropy(0.3)(TRUE, np.zeros((3, 4, 9), "float32"))
    np.testing.assert_allclose(loss, np.log(9), rtol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_sum_reduction_equals_the_mean_times_the_total_token_weight(smoothing):
    loss = SequenceCrossEntropy(smoothing, "sum")
    tokens = np.count_nonzero(TRUE)
    mean = expected_loss(TRUE, LOGITS, smoothing)
    np.testing.assert_allclose(loss(TRUE, LOGITS), tokens * mean, rtol=1e-5)
    mean = expected_loss(TRUE, LOGITS, smoothing, WEIGHTS)
    weighs = WEIGHTS[TRUE != 0].sum()
    np.testing.assert_allclose(loss(TRUE, LOGITS, WEIGHTS), weighs * mean, rtol=1e-5)


def test_summed_losses_of_batch_parts_add_up_where_means_do_not():
    """The rows have three tokens, one token and four tokens."""
    loss, mean = SequenceCrossEntropy(0.1, "sum"), SequenceCrossEntropy(0.1)
    rows = np.array([0.5, 2.0, 1.0], "float32")
    parts = [float(loss(TRUE[i : i + 1], LOGITS[i : i + 1], rows[i : i + 1])) for i in range(3)]
    np.testing.assert_allclose(sum(parts), loss(TRUE, LOGITS, rows), rtol=1e-6)
    weighs = (rows * (TRUE != 0).sum(axis=1)).sum()
    np.testing.assert_allclose(sum(parts) / weighs, mean(TRUE, LOGITS, rows), rtol=1e-6)
    means = [float(mean(TRUE[i : i + 1], LOGITS[i : i + 1])) for i in range(3)]
    assert abs(np.mean(means) - float(mean(TRUE, LOGITS))) > 0.1


def test_row_weights_apply_to_every_token_of_the_row():
    rows = np.array([0.5, 2.0, 1.0], "float32")
    loss = SequenceCrossEntropy(0.1)
    np.testing.assert_allclose(
        loss(TRUE, LOGITS, sample_weight=rows),
        expected_loss(TRUE, LOGITS, 0.1, np.repeat(rows[:, None], 4, axis=1)),
        rtol=1e-5,
    )


def test_more_padding_does_not_change_the_loss():
    loss = SequenceCrossEntropy(0.1)
    wider = np.pad(LOGITS, [(0, 2), (0, 3), (0, 0)], constant_values=7)
    padded = loss(np.pad(TRUE, [(0, 2), (0, 3)]), wider)
    np.testing.assert_allclose(padded, loss(TRUE, LOGITS), rtol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_padding_logits_affect_neither_loss_nor_gradient(smoothing):
    loss = SequenceCrossEntropy(smoothing)
    spoiled = np.where(TRUE[..., None] == 0, np.nan, LOGITS).astype("float32")
    np.testing.assert_allclose(loss(TRUE, spoiled), loss(TRUE, LOGITS), rtol=1e-6)
    (expected,), _ = gradients(lambda logits: loss(TRUE, logits), [LOGITS])
    (gradient,), _ = gradients(lambda logits: loss(TRUE, logits), [spoiled])
    np.testing.assert_allclose(gradient, expected, atol=1e-7)


def test_batch_of_only_padding_has_zero_loss_and_zero_gradient():
    loss = SequenceCrossEntropy(0.1)
    nothing = np.zeros((3, 4), "int32")
    assert float(loss(nothing, LOGITS)) == 0
    assert float(loss(TRUE, LOGITS, sample_weight=np.zeros(3, "float32"))) == 0
    (gradient,), _ = gradients(lambda logits: loss(nothing, logits), [LOGITS])
    assert not gradient.any()


@pytest.mark.parametrize("scale", [1e4, 1e-6])
def test_extreme_logits_stay_finite(scale):
    logits = (LOGITS * scale).astype("float32")
    np.testing.assert_allclose(
        SequenceCrossEntropy(0.1)(TRUE, logits), expected_loss(TRUE, logits, 0.1), rtol=1e-4
    )


def test_half_precision_logits_are_summed_in_float32():
    half = ops.cast(LOGITS, "bfloat16")
    loss = SequenceCrossEntropy(0.1)(TRUE, half)
    assert keras.backend.standardize_dtype(loss.dtype) == "float32"
    rounded = ops.convert_to_numpy(ops.cast(half, "float32"))
    np.testing.assert_allclose(loss, expected_loss(TRUE, rounded, 0.1), rtol=1e-5)


def test_float_target_ids_give_the_same_loss():
    loss = SequenceCrossEntropy()
    np.testing.assert_allclose(loss(TRUE.astype("float32"), LOGITS), loss(TRUE, LOGITS))


def test_compiled_model_evaluates_to_the_expected_loss():
    model = keras.Sequential([keras.Input((4, 3)), keras.layers.Dense(9)])
    model.compile("sgd", SequenceCrossEntropy(0.1))
    x = np.random.default_rng(2).normal(size=(3, 4, 3)).astype("float32")
    logits = model.predict_on_batch(x)
    np.testing.assert_allclose(
        model.evaluate(x, TRUE, verbose=0), expected_loss(TRUE, logits, 0.1), rtol=1e-5
    )


def test_sequence_cross_entropy_round_trips_through_its_config():
    loss = SequenceCrossEntropy(0.25, "sum", name="mine")
    again = keras.losses.deserialize(json.loads(json.dumps(keras.losses.serialize(loss))))
    assert isinstance(again, SequenceCrossEntropy)
    assert again.get_config() == loss.get_config()
    assert (again.label_smoothing, again.reduction) == (0.25, "sum")


@pytest.mark.parametrize("reduction", ["none", "mean", "sum_over_batch_size"])
def test_sequence_cross_entropy_rejects_reductions_that_count_padding(reduction):
    message = rf'`reduction` must be "mean_with_sample_weight" or "sum", received \'{reduction}\''
    with pytest.raises(ValueError, match=message):
        SequenceCrossEntropy(reduction=reduction)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 2])
def test_sequence_cross_entropy_rejects_an_invalid_label_smoothing(smoothing):
    with pytest.raises(ValueError, match=rf"`label_smoothing` must be in \[0, 1\).*{smoothing}"):
        SequenceCrossEntropy(smoothing)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_comparable_cross_entropy_has_the_plain_value_and_the_smoothed_gradient(smoothing):
    plain, smoothed = ComparableCrossEntropy(smoothing), SequenceCrossEntropy(smoothing)
    value = float(plain(TRUE, LOGITS, WEIGHTS))
    assert value == pytest.approx(expected_loss(TRUE, LOGITS, 0.0, WEIGHTS), rel=1e-5)
    # A test above compares the smoothed loss with finite differences.
    (gradient,), _ = gradients(lambda logits: plain(TRUE, logits, WEIGHTS), [LOGITS])
    (expected,), _ = gradients(lambda logits: smoothed(TRUE, logits, WEIGHTS), [LOGITS])
    np.testing.assert_array_equal(gradient, expected)
