"""Frequencies of the samples, and the random numbers of a sampler."""

import keras
import numpy as np
import pytest
from keras import ops
from scipy import stats

from keras_seq.layers import (
    CategoricalSampler,
    GreedySampler,
    ScheduledEmbeddingSampler,
    ScheduledOutputSampler,
    TrainingSampler,
)
from keras_seq.layers.sampling.samplers import sample

pytestmark = pytest.mark.jax

SAMPLERS = [
    TrainingSampler(),
    ScheduledEmbeddingSampler(0.5, seed=1),
    ScheduledOutputSampler(0.5),
    GreedySampler(2, 3),
    CategoricalSampler(2, 3, temperature=0.5, seed=1),
]


def test_samples_follow_the_softmax_probabilities():
    probabilities = np.array([0.5, 0.0, 0.3, 0.15, 0.05])
    with np.errstate(divide="ignore"):
        logits = np.log(probabilities).astype("float32")
    uniform = np.random.default_rng(0).random(20_000).astype("float32")
    drawn = ops.convert_to_numpy(sample(ops.array(logits[None]), ops.array(uniform)))
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == 0
    seen = probabilities > 0
    assert stats.chisquare(counts[seen], probabilities[seen] * len(drawn)).pvalue > 0.01


def test_extreme_uniform_values_sample_words_of_nonzero_probability():
    logits = ops.array([[-1e9, 0.0, 0.0, -1e9]])
    largest = 1 - 2.0**-23
    drawn = sample(logits, ops.array([0.0, largest], dtype="float32"))
    assert ops.convert_to_numpy(drawn).tolist() == [1, 2]


def test_low_temperature_samples_the_likeliest_word():
    logits = ops.array([[0.1, 0.3, 0.2]])
    uniform = ops.array(np.linspace(0, 0.999, 50), dtype="float32")
    cold = CategoricalSampler(0, 1, temperature=1e-3)
    assert set(ops.convert_to_numpy(cold.ids(logits, uniform)).tolist()) == {1}


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_config_makes_the_same_sampler(sampler):
    config = keras.saving.serialize_keras_object(sampler)
    assert keras.saving.deserialize_keras_object(config) == sampler


@pytest.mark.parametrize("sampler", [ScheduledEmbeddingSampler, ScheduledOutputSampler])
@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_probability_outside_0_to_1_raises_value_error(sampler, probability):
    with pytest.raises(ValueError, match=r"in \[0, 1\], received"):
        sampler(probability)


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan")])
def test_temperature_not_above_0_raises_value_error(temperature):
    with pytest.raises(ValueError, match="above 0, received.*GreedySampler"):
        CategoricalSampler(2, 3, temperature=temperature)
