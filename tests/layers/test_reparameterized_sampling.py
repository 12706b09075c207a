"""The latent normal distribution: its moments, its divergence, its gradients."""

import differentiation
import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import ReparameterizedSampling

pytestmark = pytest.mark.jax

MEAN = np.array([[0.5, -1.0, 2.0], [0.0, 3.0, 0.1]], "float32")
LOG_VARIANCE = np.array([[0.0, 1.0, -2.0], [0.3, -0.7, 2.0]], "float32")


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def test_latent_samples_have_the_given_mean_and_variance():
    draws = 100_000
    layer = ReparameterizedSampling(seed=1)
    mean, log_variance = (np.repeat(array[:1], draws, axis=0) for array in (MEAN, LOG_VARIANCE))
    z = numpy_of(layer(mean, log_variance, training=True)).astype("float64")
    variance = np.exp(LOG_VARIANCE[0].astype("float64"))
    # Four standard errors of a mean and of a variance.
    assert (np.abs(z.mean(axis=0) - MEAN[0]) < 4 * (variance / draws) ** 0.5).all()
    assert (np.abs(z.var(axis=0) / variance - 1) < 4 * (2 / draws) ** 0.5).all()


def test_latent_samples_repeat_with_the_seed_and_change_between_calls():
    first, again = ReparameterizedSampling(seed=3), ReparameterizedSampling(seed=3)
    z = numpy_of(first(MEAN, LOG_VARIANCE, training=True))
    np.testing.assert_array_equal(z, numpy_of(again(MEAN, LOG_VARIANCE, training=True)))
    assert not np.allclose(z, numpy_of(first(MEAN, LOG_VARIANCE, training=True)))


def test_latent_sampling_at_inference_returns_the_mean():
    np.testing.assert_array_equal(numpy_of(ReparameterizedSampling()(MEAN, LOG_VARIANCE)), MEAN)


def test_gradient_to_the_mean_is_1_and_to_the_log_variance_half_the_deviation():
    layer = ReparameterizedSampling(seed=1)
    layer.build(MEAN.shape, LOG_VARIANCE.shape)

    def total(mean, log_variance):
        # The generator's state stays in the scope, so each call returns the same samples.
        return ops.sum(layer.call(mean, log_variance, training=True))

    with keras.StatelessScope():
        z = numpy_of(layer.call(*map(ops.convert_to_tensor, (MEAN, LOG_VARIANCE)), training=True))
    (by_mean, by_log_variance), _ = differentiation.gradients(total, [MEAN, LOG_VARIANCE])
    np.testing.assert_allclose(by_mean, 1, atol=1e-6)
    np.testing.assert_allclose(by_log_variance, (z - MEAN) / 2, atol=1e-5)


def test_kl_divergence_equals_the_closed_form():
    expected = 0.5 * (MEAN**2 + np.exp(LOG_VARIANCE) - 1 - LOG_VARIANCE).sum(axis=1)
    got = numpy_of(ReparameterizedSampling().kl_divergence(MEAN, LOG_VARIANCE))
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(("mean", "log_variance"), [(0.0, 0.0), (1.5, -1.0), (-0.3, 0.8)])
def test_kl_divergence_equals_the_numerical_integral(mean, log_variance):
    x = np.linspace(-20, 20, 400_001)
    log_p = -0.5 * ((x - mean) ** 2 / np.exp(log_variance) + log_variance)
    # The factors of both densities cancel in the logarithm of their ratio.
    integrand = np.exp(log_p) / (2 * np.pi) ** 0.5 * (log_p + 0.5 * x**2)
    expected = integrand.sum() * (x[1] - x[0])
    inputs = np.float32([[mean]]), np.float32([[log_variance]])
    got = float(ReparameterizedSampling().kl_divergence(*inputs)[0])
    assert abs(got - expected) < 1e-6


def test_kl_divergence_over_steps_ignores_padding():
    generator = np.random.default_rng(0)
    mean, log_variance = generator.normal(size=(2, 2, 4, 3)).astype("float32")
    mask = np.array([[True, True, True, False], [True, False, False, False]])
    of_numbers = 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance)
    expected = [of_numbers[row, :length].sum() for row, length in enumerate((3, 1))]
    mean[~mask] = np.nan
    layer = ReparameterizedSampling()
    np.testing.assert_allclose(layer.kl_divergence(mean, log_variance, mask), expected, rtol=1e-5)
    layer(mean, log_variance, mean_mask=mask)
    np.testing.assert_allclose(float(layer.losses[0]), np.mean(expected), rtol=1e-5)


def test_kl_loss_is_scaled_by_an_assignable_weight():
    layer = ReparameterizedSampling(kl_weight=0.25)
    mean_divergence = numpy_of(layer.kl_divergence(MEAN, LOG_VARIANCE)).mean()
    for weight in (0.25, 0.75):
        layer(MEAN, LOG_VARIANCE)
        (loss,) = layer.losses
        np.testing.assert_allclose(float(loss), weight * mean_divergence, rtol=1e-6)
        layer.kl_weight.assign(0.75)
    assert not layer.trainable_weights


def test_free_bits_set_a_floor_on_the_kl_loss_of_each_unit():
    layer = ReparameterizedSampling(free_bits=0.5)
    layer(MEAN, LOG_VARIANCE)
    of_units = (0.5 * (MEAN**2 + np.exp(LOG_VARIANCE) - 1 - LOG_VARIANCE)).mean(axis=0)
    assert of_units.min() < 0.5 < of_units.max()
    np.testing.assert_allclose(float(layer.losses[0]), np.maximum(of_units, 0.5).sum(), rtol=1e-6)


def test_callback_anneals_the_kl_weight_during_fit():
    inputs = keras.Input((3,))
    layer = ReparameterizedSampling(kl_weight=0.0, seed=1)
    model = keras.Model(inputs, layer(keras.layers.Dense(3)(inputs), keras.layers.Dense(3)(inputs)))
    model.compile("sgd", loss="mse")
    anneal = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: layer.kl_weight.assign(float(epoch))
    )
    history = model.fit(MEAN, MEAN, epochs=2, verbose=0, callbacks=[anneal]).history
    assert np.isfinite(history["loss"]).all()
    assert float(layer.kl_weight) == 1.0


def test_kl_divergence_of_a_variance_beyond_float16_is_accurate():
    layer = ReparameterizedSampling(dtype="mixed_float16")
    # exp(12) overflows float16.
    inputs = np.float16([[0.0]]), np.float16([[12.0]])
    expected = 0.5 * (np.exp(12.0) - 13)
    np.testing.assert_allclose(float(layer.kl_divergence(*inputs)[0]), expected, rtol=1e-6)
    z = layer(*inputs, training=True)
    assert np.isfinite(numpy_of(z)).all()
    np.testing.assert_allclose(float(layer.losses[0]), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["kl_weight", "free_bits"])
def test_negative_kl_weight_or_free_bits_raises_value_error(name):
    with pytest.raises(ValueError, match=f"`{name}` must not be negative, received -1"):
        ReparameterizedSampling(**{name: -1})


def test_mismatched_latent_shapes_raise_value_error():
    with pytest.raises(ValueError, match=r"same shape, received \(2, 3\) and \(2, 4\)"):
        ReparameterizedSampling()(MEAN, np.ones((2, 4), "float32"))
    with pytest.raises(ValueError, match=r"\(batch, units\) or .*, received \(3,\)"):
        ReparameterizedSampling()(MEAN[0], MEAN[0])
    with pytest.raises(ValueError, match="A mask is for inputs of shape"):
        ReparameterizedSampling()(MEAN, MEAN, mean_mask=np.ones((2, 3), "bool"))
