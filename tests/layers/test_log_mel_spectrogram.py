"""Log-mel spectrograms against the definition, written out in numpy."""

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops

from keras_seq.layers import LogMelSpectrogram

pytestmark = [pytest.mark.jax, pytest.mark.torch]

SMALL = {"sampling_rate": 8000, "num_mels": 12, "frame_length": 200, "frame_step": 80}


def numbers(tensor):
    return ops.convert_to_numpy(tensor)


def speech(*shape, seed=0):
    """Returns a tone with growing noise, so that frames and bands differ."""
    generator = np.random.default_rng(seed)
    time = np.arange(shape[-1])
    noise = generator.normal(size=shape) * (0.1 + time / shape[-1])
    return (noise + np.sin(2 * np.pi * 440 / 8000 * time)).astype("float32")


def by_definition(samples, mels, points, length, step, rate, lower, upper, level, causal):
    """Computes one row with loops over bands and frequencies."""

    def mel_of(frequency):
        return 2595 * np.log10(1 + frequency / 700)

    corners = np.linspace(mel_of(lower), mel_of(upper), mels + 2)
    places = np.array([mel_of(rate * k / points) for k in range(points // 2 + 1)])
    n = np.arange(length)
    window = level - (1 - level) * np.cos(2 * np.pi * n / length)
    if causal:
        samples = np.concatenate([np.zeros(length - step), samples])
    rows = []
    for start in range(0, len(samples) - length + 1, step):
        frame = samples[start : start + length].astype("float64") * window
        power = np.array(
            [
                abs((frame * np.exp(-2j * np.pi * k * n / points)).sum()) ** 2
                for k in range(len(places))
            ]
        )
        row = []
        for m in range(mels):
            below, middle, above = corners[m : m + 3]
            rising = (places - below) / (middle - below)
            falling = (above - places) / (above - middle)
            row.append(np.log(max((np.clip(np.minimum(rising, falling), 0, None) @ power), 1e-6)))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("options", "level", "lower", "upper", "points"),
    [
        ({}, 0.5, 0, 4000, 256),
        (
            {
                "window": "hamming",
                "lower_frequency": 100,
                "upper_frequency": 3500,
                "fft_length": 300,
            },
            0.54,
            100,
            3500,
            300,
        ),
    ],
)
def test_log_mel_spectrogram_equals_its_definition_in_numpy(
    options, level, lower, upper, points, causal
):
    samples = speech(2, 1000)
    got = numbers(LogMelSpectrogram(**SMALL, **options, causal=causal)(samples))
    for row, found in zip(samples, got, strict=True):
        expected = by_definition(row, 12, points, 200, 80, 8000, lower, upper, level, causal)
        # The weakest band is a thousandth of the strongest, so its rounding error is larger in the
        # log.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="asks TensorFlow's own")
def test_log_mel_spectrogram_equals_tensorflow_signal():
    import tensorflow as tf

    samples = speech(3, 4000)
    spectrum = tf.signal.stft(samples, 200, 80, 256)
    triangles = tf.signal.linear_to_mel_weight_matrix(12, 129, 8000, 60.0, 3800.0)
    expected = tf.math.log(tf.maximum(tf.abs(spectrum) ** 2 @ triangles, 1e-6))
    layer = LogMelSpectrogram(**SMALL, lower_frequency=60, upper_frequency=3800)
    np.testing.assert_allclose(numbers(layer(samples)), expected.numpy(), rtol=0, atol=1e-4)


def test_frame_lengths_in_seconds_equal_those_in_samples():
    samples = speech(1, 1000)
    seconds = {**SMALL, "frame_length": 0.025, "frame_step": 0.01}
    np.testing.assert_array_equal(
        numbers(LogMelSpectrogram(**seconds)(samples)), numbers(LogMelSpectrogram(**SMALL)(samples))
    )


@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_no_real_frame(causal):
    layer = LogMelSpectrogram(**SMALL, causal=causal)
    samples, lengths = speech(3, 1000), np.array([1000, 679, 0], "int32")
    spoiled = np.where(np.arange(1000) < lengths[:, None], samples, np.nan).astype("float32")
    got = numbers(layer({"samples": spoiled, "lengths": lengths}))
    mask = numbers(layer.compute_mask({"samples": ops.array(spoiled), "lengths": lengths}))
    assert mask.shape == got.shape[:2]
    for row, length in enumerate(lengths):
        alone = numbers(layer(samples[row : row + 1, :length]))[0]
        np.testing.assert_allclose(got[row, : len(alone)], alone, rtol=0, atol=1e-6)
        assert not got[row, len(alone) :].any()
        assert mask[row].tolist() == [True] * len(alone) + [False] * (len(got[row]) - len(alone))


def test_nan_in_padding_reaches_no_gradient():
    layer = LogMelSpectrogram(**SMALL)
    samples, lengths = speech(2, 500), np.array([500, 320], "int32")
    spoiled = np.where(np.arange(500) < lengths[:, None], samples, np.nan).astype("float32")

    def total(values):
        return ops.sum(layer({"samples": values, "lengths": lengths}))

    (found,), _ = gradients(total, [spoiled])
    # Two frames of 200 are in 320 samples, and end with sample 280.
    assert np.isfinite(found).all() and found[1, :280].any() and not found[1, 280:].any()


@pytest.mark.parametrize("causal", [False, True])
def test_silence_gives_the_log_of_the_floor(causal):
    outputs = numbers(
        LogMelSpectrogram(**SMALL, floor=0.01, causal=causal)(np.zeros((1, 400), "float32"))
    )
    np.testing.assert_allclose(outputs, np.log(0.01), atol=1e-6)


def test_fewer_samples_than_a_frame_have_no_frame():
    assert LogMelSpectrogram(**SMALL)(np.zeros((2, 199), "float32")).shape == (2, 0, 12)
    lengths = {"samples": np.zeros((2, 199), "float32"), "lengths": np.array([199, 3])}
    assert LogMelSpectrogram(**SMALL)(lengths).shape == (2, 0, 12)


def test_streamed_pieces_give_the_frames_of_one_full_pass():
    layer = LogMelSpectrogram(**SMALL, causal=True)
    samples, state, frames = speech(2, 960), layer.initial_state(2), []
    for start, end in ((0, 80), (80, 400), (400, 960)):
        outputs, state = layer.step(ops.array(samples[:, start:end]), state)
        frames.append(numbers(outputs))
    np.testing.assert_allclose(
        np.concatenate(frames, axis=1), numbers(layer(samples)), rtol=0, atol=1e-6
    )


def test_following_layers_receive_the_frame_mask():
    inputs = {
        "samples": keras.Input((None,), name="samples"),
        "lengths": keras.Input((), dtype="int32", name="lengths"),
    }
    features = LogMelSpectrogram(**SMALL)(inputs)
    assert features.shape == (None, None, 12)
    # A recurrent layer that sees the mask ends with the output of the last real frame.
    model = keras.Model(inputs, keras.layers.GRU(4)(features))
    samples = speech(2, 1000)
    lengths = np.array([1000, 600], "int32")
    together = model.predict_on_batch({"samples": samples, "lengths": lengths})
    alone = model.predict_on_batch({"samples": samples[1:, :600], "lengths": lengths[1:]})
    np.testing.assert_allclose(together[1:], alone, rtol=0, atol=1e-6)


def test_spectrogram_under_mixed_float16_is_rounded_only_at_the_end():
    samples = speech(1, 1000)
    halves = LogMelSpectrogram(**SMALL, dtype="mixed_float16")(samples)
    assert keras.backend.standardize_dtype(halves.dtype) == "float16"
    expected = numbers(LogMelSpectrogram(**SMALL)(samples)).astype("float16")
    np.testing.assert_array_equal(numbers(halves), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling_rate": 0}, "`sampling_rate` must be a positive integer, received 0"),
        ({"num_mels": 2.5}, "`num_mels` must be a positive integer, received 2.5"),
        ({"frame_step": 201}, "received 201, 200 and None: 201, 200 and 256 samples"),
        ({"fft_length": 128}, "`frame_length` <= `fft_length` must hold"),
        ({"window": "kaiser"}, '"hann" or "hamming", received \'kaiser\''),
        ({"upper_frequency": 4001}, "half the sampling rate must hold, received 0.0 and 4001"),
        ({"floor": 0}, "`floor` must be positive, received 0"),
        ({"num_mels": 90}, "Mel 0 of 90 is narrower than the 31.25 Hz"),
    ],
)
def test_invalid_spectrogram_settings_raise_value_error(options, message):
    with pytest.raises(ValueError) as error:
        LogMelSpectrogram(**{**SMALL, **options})
    assert message in str(error.value)


@pytest.mark.parametrize(
    "samples", [np.zeros((2, 400), "int16"), np.zeros((2, 400, 1), "float32")], ids=["ints", "axes"]
)
def test_samples_of_wrong_dtype_or_rank_raise_value_error(samples):
    with pytest.raises(ValueError, match=r"must be floats of shape \(batch, samples\), received"):
        LogMelSpectrogram(**SMALL)(samples)


def test_a_stream_needs_a_causal_layer():
    layer = LogMelSpectrogram(**SMALL)
    with pytest.raises(ValueError, match="causal=True"):
        layer.step(np.zeros((1, 80), "float32"), layer.initial_state(1))


def test_stream_piece_not_a_multiple_of_the_step_raises_value_error():
    layer = LogMelSpectrogram(**SMALL, causal=True)
    with pytest.raises(ValueError, match="a multiple of 80 samples, received 100"):
        layer.step(np.zeros((1, 100), "float32"), layer.initial_state(1))
