"""`RandomSpeed`: the samples at other speeds, their number, and the models that use it."""

import keras
import numpy as np
import pytest

from keras_seq.layers import LogMelSpectrogram, RandomSpeed
from keras_seq.models import CTCRecognizer

pytestmark = pytest.mark.jax

ROWS, COUNT = 200, 300
LENGTHS = np.where(np.arange(ROWS) % 2, COUNT, 100).astype("int32")
SAMPLES = np.random.default_rng(1).normal(size=(ROWS, COUNT)).astype("float32")
SOUNDS = {"samples": SAMPLES, "lengths": LENGTHS}


def changed(sounds=SOUNDS, change=0.1, training=True):
    outputs = RandomSpeed(change, seed=3)(sounds, training=training)
    return [keras.ops.convert_to_numpy(output) for output in outputs]


def test_samples_are_interpolated_at_the_speed():
    """A ramp shows the speed of its row: its samples are 0, r, 2 r, ..."""
    ramp = np.tile(np.arange(COUNT, dtype="float32"), (ROWS, 1))
    (ramps, lengths), (samples, _) = changed({**SOUNDS, "samples": ramp}), changed()
    speeds = ramps[:, 1]
    assert 0.9 <= speeds.min() < 0.92 and 1.08 < speeds.max() <= 1.1
    assert abs(speeds.mean() - 1) < 0.02
    np.testing.assert_array_equal(lengths, np.floor((LENGTHS - 1) / speeds) + 1)
    for row in range(ROWS):
        places = np.arange(lengths[row]) * speeds[row]
        expected = np.interp(places, np.arange(LENGTHS[row]), SAMPLES[row, : LENGTHS[row]])
        np.testing.assert_allclose(samples[row, : lengths[row]], expected, atol=1e-3)
        assert not samples[row, lengths[row] :].any()


def test_a_tone_keeps_its_length_in_periods():
    tone = np.sin(2 * np.pi * np.arange(COUNT) / 20).astype("float32")
    samples, lengths = changed({**SOUNDS, "samples": np.tile(tone, (ROWS, 1))})
    for row in np.flatnonzero(LENGTHS == COUNT)[:20]:
        crossings = np.sum(np.diff(np.sign(samples[row, : lengths[row]])) > 0)
        assert abs(crossings - COUNT / 20) <= 1


def test_nothing_changes_without_training_or_with_no_change():
    samples, lengths = changed(training=False)
    np.testing.assert_array_equal(samples, SAMPLES)
    np.testing.assert_array_equal(lengths, LENGTHS)
    samples, lengths = changed(change=0.0)
    real = np.arange(COUNT) < LENGTHS[:, None]
    np.testing.assert_array_equal(samples, np.where(real, SAMPLES, 0))
    np.testing.assert_array_equal(lengths, LENGTHS)


def test_empty_rows_stay_empty():
    samples, lengths = changed({"samples": SAMPLES[:4], "lengths": np.zeros(4, "int32")})
    assert not lengths.any() and not samples.any()


@pytest.mark.slow
@pytest.mark.weekly
def test_a_recognizer_hears_more_frames_of_slow_rows():
    features = LogMelSpectrogram(100, num_mels=4, frame_length=0.05, frame_step=0.02, fft_length=8)
    model = CTCRecognizer(
        5, features, units=4, convolution_units=4, num_layers=1, dropout=0.0, speed=RandomSpeed(0.5)
    )
    straight = model(SOUNDS, training=False)
    varied = model(SOUNDS, training=True)
    assert varied.shape[1] > 1.9 * straight.shape[1]
    # Padding frames are labeled as blank with certainty.
    real = keras.ops.convert_to_numpy(keras.ops.sum(varied[..., 1] > -1e8, axis=1))
    assert len(set(real[LENGTHS == COUNT])) > 10


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="`change` must be in"):
        RandomSpeed(1.0)
    with pytest.raises(ValueError, match="`speed` changes samples"):
        CTCRecognizer(5, 8, speed=RandomSpeed())
