"""Label losses against numpy and scikit-learn, and chain losses against all tag sequences."""

import itertools

import differentiation
import keras
import numpy as np
import pytest
from keras import ops
from sklearn.metrics import log_loss

from keras_seq.layers import ConditionalRandomField
from keras_seq.losses.label_losses import (
    ChainLoss,
    ComparableLabelCrossEntropy,
    LabelCrossEntropy,
)

pytestmark = [pytest.mark.jax, pytest.mark.torch]

GENERATOR = np.random.default_rng(1)
LABELS = 4
# The third text has no label, and the last has weight 0.
TRUE = np.array([2, 0, -1, 3, 1], "int32")
LOGITS = GENERATOR.normal(0, 2, (5, LABELS)).astype("float32")
WEIGHTS = np.array([1.0, 2.5, 3.0, 0.5, 0.0], "float32")
# A token inside a word, padding, and a text without words.
TAGS = np.array([[1, -1, 0, 3], [2, 2, -1, -1], [-1, -1, -1, -1]], "int32")
POTENTIALS = GENERATOR.normal(0, 2, (3, 4, LABELS)).astype("float32")
TEXT_WEIGHTS = np.array([0.5, 2.0, 4.0], "float32")


def test_label_cross_entropy_equals_scikit_learn_log_loss():
    real = TRUE >= 0
    powers = np.exp(LOGITS.astype("float64"))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    for weights in (None, WEIGHTS):
        expected = log_loss(
            TRUE[real],
            probabilities[real],
            sample_weight=None if weights is None else weights[real],
            labels=range(LABELS),
        )
        assert float(LabelCrossEntropy()(TRUE, LOGITS, weights)) == pytest.approx(expected, 1e-5)
        total = real.sum() if weights is None else weights[real].sum()
        summed = float(LabelCrossEntropy(reduction="sum")(TRUE, LOGITS, weights))
        assert summed == pytest.approx(expected * total, 1e-5)


def test_comparable_label_loss_has_the_plain_value_and_the_smoothed_gradient():
    plain, smoothed = ComparableLabelCrossEntropy(0.2), LabelCrossEntropy(0.2)
    expected = float(LabelCrossEntropy()(TRUE, LOGITS, WEIGHTS))
    assert float(plain(TRUE, LOGITS, WEIGHTS)) == pytest.approx(expected, rel=1e-5)
    assert abs(float(smoothed(TRUE, LOGITS, WEIGHTS)) - expected) > 0.01
    found = [
        differentiation.gradients(lambda z, loss=loss: loss(TRUE, z, WEIGHTS), [LOGITS])[0][0]
        for loss in (plain, smoothed)
    ]
    np.testing.assert_array_equal(*found)


def test_smoothing_gives_a_share_to_every_label():
    found = float(LabelCrossEntropy(0.2)(TRUE, LOGITS))
    losses = []
    for label, logits in zip(TRUE, LOGITS.astype("float64"), strict=True):
        target = np.full(LABELS, 0.2 / LABELS)
        target[label] += 0.8
        losses.append(-(target * (logits - np.log(np.exp(logits).sum()))).sum())
    smoothed = np.mean([loss for loss, label in zip(losses, TRUE, strict=True) if label >= 0])
    assert found == pytest.approx(smoothed, 1e-5)


def test_tag_cross_entropy_gives_each_tag_the_weight_of_its_text():
    found = LabelCrossEntropy()(TAGS, POTENTIALS, TEXT_WEIGHTS)
    flat = LabelCrossEntropy()(
        TAGS.reshape(-1), POTENTIALS.reshape(-1, LABELS), np.repeat(TEXT_WEIGHTS, 4)
    )
    assert float(found) == pytest.approx(float(flat), 1e-6)


def made_field():
    field = ConditionalRandomField()
    field.build((None, None, LABELS))
    for index, weight in enumerate(field.weights):
        weight.assign(np.random.default_rng([2, index]).normal(size=weight.shape))
    return field


def costs(field):
    """Negative log-probability of each text's tags, by a sum over all tag sequences."""
    transitions, start, end = (np.asarray(weight.numpy(), "float64") for weight in field.weights)
    found = []
    for potentials, tags in zip(POTENTIALS.astype("float64"), TAGS, strict=True):
        real = tags >= 0
        if not real.any():
            found.append(0.0)
            continue
        scores = {
            sequence: start[sequence[0]]
            + end[sequence[-1]]
            + sum(row[tag] for row, tag in zip(potentials[real], sequence, strict=True))
            + sum(transitions[pair] for pair in itertools.pairwise(sequence))
            for sequence in itertools.product(range(LABELS), repeat=real.sum())
        }
        all_of_them = np.log(np.exp(list(scores.values())).sum())
        found.append(all_of_them - scores[tuple(tags[real])])
    return np.array(found)


def test_chain_loss_equals_the_sum_over_all_tag_sequences():
    field = made_field()
    expected, tags = costs(field), (TAGS >= 0).sum(axis=1)
    assert float(ChainLoss(field, "sum")(TAGS, POTENTIALS)) == pytest.approx(expected.sum(), 1e-5)
    weighted = float(ChainLoss(field, "sum")(TAGS, POTENTIALS, TEXT_WEIGHTS))
    assert weighted == pytest.approx((expected * TEXT_WEIGHTS).sum(), 1e-5)
    mean = float(ChainLoss(field)(TAGS, POTENTIALS, TEXT_WEIGHTS))
    total = (tags * TEXT_WEIGHTS).sum()
    assert mean == pytest.approx((expected * TEXT_WEIGHTS).sum() / total, 1e-5)


def test_chain_loss_with_zero_field_weights_equals_cross_entropy():
    field = made_field()
    for weight in field.weights:
        weight.assign(np.zeros(weight.shape))
    for weights in (None, TEXT_WEIGHTS):
        chain = float(ChainLoss(field)(TAGS, POTENTIALS, weights))
        assert chain == pytest.approx(float(LabelCrossEntropy()(TAGS, POTENTIALS, weights)), 1e-5)


@pytest.mark.parametrize("kind", ["chain", "labels"])
def test_padding_logits_affect_neither_loss_nor_gradient(kind):
    loss = ChainLoss(made_field()) if kind == "chain" else LabelCrossEntropy(0.1)
    spoiled = np.where((TAGS >= 0)[..., None], POTENTIALS, np.nan).astype("float32")
    assert float(loss(TAGS, spoiled)) == pytest.approx(float(loss(TAGS, POTENTIALS)), 1e-6)
    (gradient,), _ = differentiation.gradients(lambda logits: loss(TAGS, logits), [spoiled])
    assert np.isfinite(gradient).all()
    assert not gradient[TAGS < 0].any() and gradient[TAGS >= 0].any()


@pytest.mark.parametrize("kind", ["chain", "labels"])
def test_batch_without_labels_has_zero_loss(kind):
    loss = ChainLoss(made_field()) if kind == "chain" else LabelCrossEntropy()
    nothing = np.full_like(TAGS, -1)
    assert float(loss(nothing, POTENTIALS)) == 0
    assert float(loss(TAGS, POTENTIALS, np.zeros(3, "float32"))) == 0


def test_half_precision_logits_are_summed_in_float32():
    halves = ops.cast(LOGITS, "bfloat16")
    loss = LabelCrossEntropy()(TRUE, halves)
    assert keras.backend.standardize_dtype(loss.dtype) == "float32"
    exact = LabelCrossEntropy()(TRUE, ops.cast(halves, "float32"))
    assert float(loss) == pytest.approx(float(exact), 1e-6)


def test_label_losses_reject_invalid_arguments():
    with pytest.raises(ValueError, match="`label_smoothing` must be in"):
        LabelCrossEntropy(1.0)
    with pytest.raises(ValueError, match="`reduction` must be .* received \"?'none'"):
        LabelCrossEntropy(reduction="none")
    with pytest.raises(ValueError, match="`reduction` must be"):
        ChainLoss(made_field(), "mean")


def test_loss_of_members_is_the_mean_of_their_losses():
    members = GENERATOR.normal(0, 2, (5, 3, LABELS)).astype("float32")
    losses = [float(LabelCrossEntropy()(TRUE, members[:, i], WEIGHTS)) for i in range(3)]
    assert float(LabelCrossEntropy()(TRUE, members, WEIGHTS)) == pytest.approx(
        np.mean(losses), 1e-5
    )
