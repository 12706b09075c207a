"""The detector compared with numpy, and its causality."""

import json

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from keras import ops

from keras_seq.layers import LogMelSpectrogram
from keras_seq.models import TriggerWordDetector

STEP = 40


def made(**options):
    front = LogMelSpectrogram(1000, num_mels=6, frame_length=64, frame_step=STEP, causal=True)
    model = TriggerWordDetector(front, 2, **{"units": 5, "num_layers": 2, **options})
    reference.randomize(model)
    return model


@pytest.fixture(scope="module")
def model():
    return made()


def noise(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def logits_of(model, samples, lengths=None):
    lengths = np.full(len(samples), samples.shape[1], "int32") if lengths is None else lengths
    return model.predict_on_batch({"samples": samples, "lengths": lengths})


def by_definition(x, weights, kernel_size, num_layers):
    """Logits `(S, W)` of features `(S, D)`."""
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-3)
    x = x * weights["normalization/gamma"] + weights["normalization/beta"]
    padded = np.concatenate([np.zeros((kernel_size - 1, x.shape[1])), x])
    kernel, bias = weights["convolution/kernel"], weights["convolution/bias"]
    x = np.array(
        [
            np.maximum(0, np.einsum("cd,cdu->u", padded[s : s + kernel_size], kernel) + bias)
            for s in range(len(x))
        ]
    )
    for i in range(num_layers):
        x, _ = reference.unroll(x, [np.zeros(5)], "gru", weights, f"gru_{i}/gru_cell")
    return x @ weights["logits/kernel"] + weights["logits/bias"]


@pytest.mark.parametrize("kernel_size", [1, 4])
def test_trigger_word_detector_equals_numpy(kernel_size):
    model = TriggerWordDetector(3, 2, kernel_size=kernel_size, num_layers=2, units=5)
    reference.randomize(model)
    features, lengths = noise(2, 7, 3), np.array([7, 4], "int32")
    found = model.predict_on_batch({"features": features, "lengths": lengths})
    weights = reference.named_arrays(model)
    for row, length in enumerate(lengths):
        expected = by_definition(features[row, :length], weights, kernel_size, 2)
        np.testing.assert_allclose(found[row, :length], expected, atol=1e-5)


def test_later_audio_does_not_change_earlier_logits(model):
    samples = noise(1, 10 * STEP)
    whole = logits_of(model, samples)
    for frame in (1, 4, 9):
        changed = samples.copy()
        changed[:, frame * STEP :] = 7 * noise(1, (10 - frame) * STEP) + 1
        found = logits_of(model, changed)
        np.testing.assert_array_equal(found[:, :frame], whole[:, :frame])
        # The next sample does change the logits.
        assert np.abs(found[:, frame] - whole[:, frame]).max() > 1e-3


def test_streaming_in_pieces_gives_the_logits_of_the_full_audio(model):
    samples = noise(2, 12 * STEP)
    whole = logits_of(model, samples)
    for cuts in ((1, 2, 3, 12), (5, 12), tuple(range(1, 13))):
        state, found, start = model.initial_state(2), [], 0
        for end in cuts:
            piece = ops.array(samples[:, start * STEP : end * STEP])
            heard = model.stream_step({"samples": piece, "state": state})
            state, start = heard["state"], end
            found.append(ops.convert_to_numpy(heard["logits"]))
        np.testing.assert_allclose(np.concatenate(found, axis=1), whole, atol=1e-5)


def test_padding_frames_do_not_count_in_the_loss():
    model = made()
    model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True))
    samples, lengths = noise(2, 10 * STEP), np.array([10 * STEP, 4 * STEP], "int32")
    labels = np.random.default_rng(1).integers(0, 2, (2, 10, 2)).astype("float32")
    loss = model.evaluate({"samples": samples, "lengths": lengths}, labels, verbose=0)
    logits = logits_of(model, samples, lengths).astype("float64")
    each = np.log1p(np.exp(logits)) - labels * logits
    expected = (each[0].sum() + each[1, :4].sum()) / (14 * 2)
    assert loss == pytest.approx(expected, abs=1e-5)


def test_detector_survives_config_and_file_round_trips(model, tmp_path):
    config = json.loads(json.dumps(model.get_config()))
    again = TriggerWordDetector.from_config(config).get_config()
    assert json.loads(json.dumps(again)) == config
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    samples = noise(1, 8 * STEP)
    np.testing.assert_array_equal(logits_of(loaded, samples), logits_of(model, samples))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_words": 0}, "`num_words` must be a positive integer, received 0"),
        ({"kernel_size": 0}, "`kernel_size` must be a positive integer"),
        ({"features": LogMelSpectrogram(name="ahead")}, "'ahead' must not look ahead"),
        ({"features": -1}, "or a positive integer, received -1"),
    ],
)
def test_invalid_detector_arguments_are_named_in_the_error(arguments, words):
    with pytest.raises(ValueError) as error:
        TriggerWordDetector(**{"features": 4, **arguments})
    assert words in str(error.value)
