"""`RandomNoise`: how loud the noise is, and where it is added."""

import keras
import numpy as np
import pytest

from keras_seq.layers import RandomNoise

pytestmark = pytest.mark.jax

ROWS, COUNT = 300, 4000
LENGTHS = np.where(np.arange(ROWS) % 2, COUNT, 1000).astype("int32")
REAL = np.arange(COUNT) < LENGTHS[:, None]
SAMPLES = np.random.default_rng(1).normal(scale=0.1, size=(ROWS, COUNT)).astype("float32")


def added(samples=SAMPLES, **options):
    layer = RandomNoise(**options, seed=3)
    noisy = layer({"samples": samples, "lengths": LENGTHS}, training=True)
    return keras.ops.convert_to_numpy(noisy) - samples


def power(values):
    return (np.where(REAL, values, 0) ** 2).sum(1) / LENGTHS


def test_noise_has_the_ratio_to_the_signal():
    ratio = 10 * np.log10(power(SAMPLES) / power(added(low=12.0, high=12.0, rate=1.0)))
    np.testing.assert_allclose(ratio, 12, atol=1)
    ratios = 10 * np.log10(power(SAMPLES) / power(added(low=0.0, high=30.0, rate=1.0)))
    assert ratios.min() < 3 and ratios.max() > 27 and abs(ratios.mean() - 15) < 2


def test_noise_is_colored_by_the_previous_sample():
    noise = added(low=0.0, high=0.0, rate=1.0)[LENGTHS == COUNT]
    correlation = (noise[:, 1:] * noise[:, :-1]).mean(1) / (noise**2).mean(1)
    # c / (1 + c^2) for c of -0.95 to 0.95.
    assert -0.55 < correlation.min() < -0.4 and 0.4 < correlation.max() < 0.55


def test_padding_silence_and_some_rows_stay_as_they_are():
    noise = added(rate=0.5)
    assert not noise[~REAL].any()
    share = (noise != 0).any(1).mean()
    assert 0.4 < share < 0.6
    assert not added(np.zeros_like(SAMPLES), rate=1.0).any()
    sounds = {"samples": SAMPLES, "lengths": LENGTHS}
    same = keras.ops.convert_to_numpy(RandomNoise()(sounds, training=False))
    np.testing.assert_array_equal(same, SAMPLES)


def test_noise_follows_the_seed():
    np.testing.assert_array_equal(added(), added())


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="`low` must be at most `high`"):
        RandomNoise(low=3, high=2)
    with pytest.raises(ValueError, match="`rate` must be in"):
        RandomNoise(rate=1.5)
