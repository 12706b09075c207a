"""Sequence loss against explicit sums."""

import itertools

import numpy as np
import pytest
from differentiation import gradients
from keras import ops

from keras_seq.losses import SequenceCrossEntropy, sequence_loss

pytestmark = pytest.mark.torch

B, T, V = 3, 4, 5
RANDOM = np.random.default_rng(0)
LOGITS = RANDOM.normal(size=(B, T, V)).astype("float32")
TARGETS = RANDOM.integers(1, V, (B, T)).astype("int32")
# A weight that is not a power of 2, steps without weight, and a row without weight.
WEIGHTS = np.array([[1, 0.3, 2, 0], [1, 1, 0, 0], [0, 0, 0, 0]], "float32")


def written_out(average, axes):
    losses = np.zeros((B, T))
    for row, step in itertools.product(range(B), range(T)):
        scores = LOGITS[row, step].astype("float64")
        share = np.exp(scores[TARGETS[row, step]]) / np.exp(scores).sum()
        losses[row, step] = -np.log(share) * WEIGHTS[row, step]
    if not axes:
        return losses
    size = (WEIGHTS if average else WEIGHTS != 0).sum(axis=axes)
    return np.divide(
        losses.sum(axis=axes), size, out=np.zeros_like(size, "float64"), where=size > 0
    )


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("axes", [(0, 1), (0,), (1,), ()])
def test_sequence_loss_equals_numpy_for_every_reduction(average, axes):
    loss = sequence_loss(
        LOGITS,
        TARGETS,
        WEIGHTS,
        average_across_timesteps=average and 1 in axes,
        average_across_batch=average and 0 in axes,
        sum_over_timesteps=not average and 1 in axes,
        sum_over_batch=not average and 0 in axes,
    )
    np.testing.assert_allclose(
        ops.convert_to_numpy(loss), written_out(average, axes), rtol=0, atol=1e-6
    )


def test_sequence_loss_default_equals_sequence_cross_entropy():
    targets = np.where(WEIGHTS > 0, TARGETS, 0)
    theirs = SequenceCrossEntropy()(targets, LOGITS, sample_weight=WEIGHTS)
    assert float(sequence_loss(LOGITS, TARGETS, WEIGHTS)) == pytest.approx(float(theirs), abs=1e-6)


def test_nan_logits_without_weight_affect_neither_loss_nor_gradient():
    spoiled = np.where(WEIGHTS[..., None] > 0, LOGITS, np.nan).astype("float32")

    def loss(logits):
        return sequence_loss(logits, TARGETS, WEIGHTS)

    (clean,), _ = gradients(loss, [LOGITS])
    (gradient,), _ = gradients(loss, [spoiled])
    np.testing.assert_allclose(gradient, clean, rtol=0, atol=1e-7)
    assert float(loss(spoiled)) == pytest.approx(float(loss(LOGITS)))


def test_boolean_mask_is_accepted_as_weights():
    assert float(sequence_loss(LOGITS, TARGETS, WEIGHTS > 0)) == pytest.approx(
        float(sequence_loss(LOGITS, TARGETS, np.float32(WEIGHTS > 0)))
    )


def test_sequence_loss_rejects_conflicting_options_and_wrong_shapes():
    with pytest.raises(ValueError, match="not both: received average_across_timesteps=True"):
        sequence_loss(LOGITS, TARGETS, WEIGHTS, sum_over_batch=True)
    with pytest.raises(ValueError, match=r"`logits` must be \(B, T, V\), received shape \(3, 4\)"):
        sequence_loss(LOGITS[..., 0], TARGETS, WEIGHTS)
    with pytest.raises(ValueError, match=r"`targets` must be \(B, T\), received shape \(3, 4, 1\)"):
        sequence_loss(LOGITS, TARGETS[..., None], WEIGHTS)
    with pytest.raises(ValueError, match=r"`weights` must be \(B, T\), received shape \(3,\)"):
        sequence_loss(LOGITS, TARGETS, WEIGHTS[:, 0])
