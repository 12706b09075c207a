"""The KL divergence in VAE training, and the evaluation of the latent code."""

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops

from keras_seq.losses import SequenceCrossEntropy
from keras_seq.models import SequenceVAE
from keras_seq.schedules.rates import linear_annealing
from keras_seq.training.latent_evaluation import (
    active_units,
    make_latent_evaluation,
    mutual_information,
)
from keras_seq.training.vae_training_model import DivergenceLoss, VAETrainingModel

pytestmark = pytest.mark.jax

SOURCE = np.array([[5, 6, 7, 3], [7, 3, 0, 0], [4, 9, 3, 0], [8, 8, 3, 0]], np.int32)
INPUT = np.array([[2, 5, 6, 7], [2, 7, 0, 0], [2, 4, 9, 0], [2, 8, 8, 0]], np.int32)
INPUTS = {"source": SOURCE, "target": INPUT}
BATCH = {"source": SOURCE, "target_input": INPUT, "target_output": SOURCE}


@pytest.fixture(scope="module")
def model():
    sizes = {"latent_units": 3, "embedding_units": 4, "encoder_units": 4, "decoder_units": 5}
    made = SequenceVAE(12, **sizes, dropout=0.0, seed=1)
    random = np.random.default_rng(0)
    made.set_weights([random.normal(size=w.shape) * 0.5 for w in made.get_weights()])
    return made


def numbers(tensor):
    return ops.convert_to_numpy(tensor)


def divergences(model):
    """Returns the KL divergence of each latent unit `(B, Z)` by its formula."""
    found = {name: numbers(part).astype(float) for name, part in model.posterior(SOURCE).items()}
    mean, log_variance = found["mean"], found["log_variance"]
    return 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance)


def test_divergence_of_each_unit_is_at_least_the_free_bits(model):
    taught = VAETrainingModel(model, 0.5, free_bits=0.25)
    expected = 0.5 * np.maximum(divergences(model), 0.25).sum(1)
    assert (divergences(model) < 0.25).any()
    np.testing.assert_allclose(numbers(taught(INPUTS)["divergence"]), expected, rtol=1e-4)


def test_divergence_weight_follows_the_schedule_per_update(model):
    taught = VAETrainingModel(model, linear_annealing(4), micro_batches=2)
    whole = divergences(model).sum(1)
    before = int(numbers(model.seed_generator.state.value)[1])
    for batch in range(before, before + 6):
        found = numbers(taught(INPUTS, training=True)["divergence"])
        np.testing.assert_allclose(found, min(1, (batch // 2) / 4) * whole, rtol=1e-4)


@pytest.mark.torch
def test_divergence_loss_ignores_padding_rows():
    loss = DivergenceLoss()
    ids, divergence = np.array([[5, 3], [0, 0], [0, 7]]), np.array([1.5, np.nan, 2.0], "float32")
    weights = np.array([2.0, 5.0, 0.5], "float32")
    assert float(loss(ids, divergence, sample_weight=weights)) == pytest.approx(4.0)
    assert float(loss(ids, divergence)) == pytest.approx(3.5)
    assert isinstance(keras.losses.deserialize(keras.losses.serialize(loss)), DivergenceLoss)


def test_gradients_of_batch_parts_add_up_to_that_of_the_full_batch(model):
    """Splits the batch unevenly and adds rows of zeros, as devices and micro-batches do."""
    taught = VAETrainingModel(model, 0.7, free_bits=0.1)
    losses = SequenceCrossEntropy(reduction="sum"), DivergenceLoss()
    weights = np.array([0.1, 0.2, 0.3, 0.4], "float32")

    def gradient(rows, zeros=0):
        source, given, weight = (
            np.pad(array[rows], [(0, zeros), *[(0, 0)] * (array.ndim - 1)], constant_values=value)
            for array, value in ((SOURCE, 0), (INPUT, 0), (weights, 1))
        )

        def total():
            out = taught({"source": source, "target": given}, training=False)
            parts = zip(losses, ("logits", "divergence"), strict=True)
            return sum(loss(source, out[name], sample_weight=weight) for loss, name in parts)

        return gradients(total, [], model.trainable_variables)[1]

    whole = gradient([0, 1, 2, 3])
    parts = [gradient([0]), gradient([1, 2, 3], zeros=2)]
    for place, expected in enumerate(whole):
        np.testing.assert_allclose(sum(part[place] for part in parts), expected, atol=2e-5)
    assert max(np.abs(one).max() for one in whole) > 0.1


def test_negative_free_bits_raise_value_error(model):
    with pytest.raises(ValueError, match="`free_bits` must not be negative, received -1"):
        VAETrainingModel(model, free_bits=-1)


random = np.random.default_rng(3)


def test_mutual_information_of_a_linear_code_equals_the_gaussian_channel():
    """z = a x + s e with x, e ~ N(0, 1): I = 1/2 log(1 + a^2 / s^2) and z ~ N(0, a^2 + s^2)."""
    means = 1.2 * random.standard_normal((2000, 1))
    log_variances = np.full((2000, 1), 2 * np.log(0.4))
    information, missed = mutual_information(
        means, log_variances, random.standard_normal((2000, 1))
    )
    assert information == pytest.approx(0.5 * np.log(1 + 9), abs=0.05)
    variance = 1.44 + 0.16
    assert missed == pytest.approx(0.5 * (variance - 1 - np.log(variance)), abs=0.05)


def test_mutual_information_is_two_bits_for_four_points_and_zero_if_collapsed():
    means = np.repeat([[-9.0, -9.0], [-9.0, 9.0], [9.0, -9.0], [9.0, 9.0]], 100, axis=0)
    noise = random.standard_normal((400, 2))
    information, _ = mutual_information(means, np.zeros((400, 2)), noise)
    assert information == pytest.approx(2 * np.log(2), abs=1e-6)
    nothing, missed = mutual_information(np.zeros((400, 2)), np.zeros((400, 2)), noise)
    assert nothing == pytest.approx(0, abs=1e-9)
    assert missed == pytest.approx(0, abs=1e-9)


def test_active_units_counts_units_whose_mean_varies():
    means = random.standard_normal((5000, 4)) * np.sqrt([1.0, 0.02, 0.005, 0.0]) + 3.0
    assert active_units(means) == 2


def test_latent_evaluation_equals_a_bound_computed_by_hand(model):
    found = make_latent_evaluation(model)([BATCH])
    kl = divergences(model).sum(1)
    assert found["kl"] == pytest.approx(kl.mean(), rel=1e-4)
    # The evaluation samples the same z with the same generator.
    noise = np.random.default_rng(0).standard_normal((4, 3), np.float32)
    parts = {name: numbers(part) for name, part in model.posterior(SOURCE).items()}
    z = parts["mean"] + np.exp(parts["log_variance"] / 2) * noise
    logits = numbers(model.decoder({"latent": z, "target": INPUT})).astype(float)
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    real = SOURCE != 0
    losses = -np.take_along_axis(logits, SOURCE[..., None], axis=-1)[..., 0][real]
    assert found["reconstruction"] == pytest.approx(losses.mean(), rel=1e-4)
    assert found["elbo"] == pytest.approx(-(losses.sum() + kl.sum()) / 4, rel=1e-4)
    bound = np.exp((losses.sum() + kl.sum()) / real.sum())
    assert found["perplexity"] == pytest.approx(bound, rel=1e-4)


def test_padding_rows_do_not_change_the_latent_evaluation(model):
    evaluate = make_latent_evaluation(model)
    filled = {name: np.pad(array, [(0, 3), (0, 0)]) for name, array in BATCH.items()}
    whole, same = evaluate([BATCH]), evaluate([filled])
    assert whole == pytest.approx(same, rel=1e-5)
    halves = [{name: array[part] for name, array in BATCH.items()} for part in ([0, 1], [2, 3])]
    assert evaluate(halves) == pytest.approx(whole, rel=1e-5)
