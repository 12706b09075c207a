"""The CTC recognizer compared with numpy, and resumed training."""

import json

import keras
import numpy as np
import pytest
from differentiation import quick
from keras import ops
from reference_recurrent import bidirectional, named_arrays, randomize

from keras_seq import callbacks
from keras_seq.layers import LogMelSpectrogram
from keras_seq.losses import CTCLoss
from keras_seq.models import CTCRecognizer
from keras_seq.storage.checkpoints import CheckpointStore

LENGTHS = [9, 6, 1]


def convolved(x, weights, name, stride):
    """Windows of 2 stride + 1 steps around every stride-th step, zeros beyond both ends."""
    kernel = weights[f"{name}/convolution/kernel"]
    width = kernel.shape[0]
    padded = np.concatenate([np.zeros((stride, x.shape[1])), x, np.zeros((width, x.shape[1]))])
    windows = [padded[start : start + width] for start in range(0, len(x), stride)]
    outputs = [np.einsum("kd,kdu->u", window, kernel) for window in windows]
    return np.maximum(np.array(outputs) + weights[f"{name}/convolution/bias"], 0)


def expected_logits(x, weights, strides):
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    x = (x - mean) / np.sqrt(variance + 1e-3)
    x = x * weights["normalization/gamma"] + weights["normalization/beta"]
    for i, stride in enumerate(strides):
        x = convolved(x, weights, f"convolution_{i}", stride)
    x, _ = bidirectional(x, "gru", weights, 2)
    return x @ weights["logits/projection/kernel"] + weights["logits/projection/bias"]


@pytest.mark.parametrize("strides", [(), (2,), (2, 3)], ids=str)
def test_ctc_recognizer_equals_numpy(strides):
    model = CTCRecognizer(5, 4, strides=strides, convolution_units=6, units=3)
    randomize(model)
    weights = named_arrays(model)
    features = np.random.default_rng(1).normal(size=(3, 9, 4)).astype("float32")
    # Samples after the end may have any value.
    features[1, 6:] = np.nan
    inputs = {"features": features, "lengths": np.array(LENGTHS, "int32")}
    logits = ops.convert_to_numpy(quick(model)(inputs))
    for row, length in enumerate(LENGTHS):
        expected = expected_logits(features[row, :length].astype("float64"), weights, strides)
        real = len(expected)
        np.testing.assert_allclose(logits[row, :real], expected, atol=1e-5)
        assert (logits[row, real:, 0] == 0).all() and (logits[row, real:, 1:] < -1e8).all()
        # The model adds one step to the nine.
        assert logits.shape[1] >= real


def test_empty_audio_gives_logits_of_padding():
    model = CTCRecognizer(5, 4, convolution_units=6, units=3)
    inputs = {"features": np.zeros((2, 0, 4), "float32"), "lengths": np.zeros(2, "int32")}
    assert ops.convert_to_numpy(model(inputs)).tolist() == [[[0.0, *[-1e9] * 4]]] * 2


def test_config_with_a_nested_layer_rebuilds_the_ctc_recognizer():
    front = LogMelSpectrogram(100, num_mels=4, frame_length=8, frame_step=4, fft_length=32)
    model = CTCRecognizer(3, front, strides=[2], cell="lstm", num_layers=1, units=2, seed=3)
    config = json.loads(json.dumps(model.get_config()))
    again = CTCRecognizer.from_config(config)
    assert json.loads(json.dumps(again.get_config())) == config
    assert [w.path for w in again.weights] == [w.path for w in model.weights]


def training(folder, epochs, stop=()):
    """The weights after a number of epochs; training resumes if there is a checkpoint."""
    keras.utils.set_random_seed(1)
    model = CTCRecognizer(4, 3, convolution_units=4, num_layers=1, units=4, seed=1)
    model.compile(keras.optimizers.Adam(0.01), CTCLoss())

    def batch(step):
        generator = np.random.default_rng(step)
        features = generator.normal(size=(4, 12, 3)).astype("float32")
        inputs = {"features": features, "lengths": generator.integers(6, 13, 4).astype("int32")}
        return inputs, generator.integers(1, 4, (4, 2))

    checkpoint = callbacks.ExactCheckpoint(CheckpointStore(folder), every=2, steps_per_epoch=3)
    begin = checkpoint.restore(model)
    model.fit(
        checkpoint.remaining(batch),
        initial_epoch=checkpoint.epoch,
        epochs=epochs,
        steps_per_epoch=3,
        shuffle=False,
        verbose=0,
        callbacks=[*stop, checkpoint],
    )
    return begin, [ops.convert_to_numpy(weight.value) for weight in model.weights]


@pytest.mark.slow
@pytest.mark.weekly
def test_resumed_ctc_training_equals_uninterrupted_training(tmp_path):
    _, expected = training(tmp_path / "whole", epochs=3)
    training(tmp_path / "stopped", epochs=3, stop=[callbacks.StopAtLimit(max_steps=4)])
    begin, found = training(tmp_path / "stopped", epochs=3)
    assert begin == 4
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


def test_invalid_ctc_recognizer_arguments_raise_value_error():
    with pytest.raises(ValueError, match="`cell` must be one of 'gru', 'lstm', received 'rnn'"):
        CTCRecognizer(5, 4, cell="rnn")
    with pytest.raises(ValueError, match="`units` must be a positive integer, received 0"):
        CTCRecognizer(5, 4, units=0)
    with pytest.raises(ValueError, match="`stride` must be a positive integer, received 0"):
        CTCRecognizer(5, 4, strides=(0,))
    with pytest.raises(ValueError, match="`vocabulary_size` must be .*, received 1"):
        CTCRecognizer(1, 4)
    with pytest.raises(ValueError, match="`features` must be a layer .* received 0"):
        CTCRecognizer(5, 0)
