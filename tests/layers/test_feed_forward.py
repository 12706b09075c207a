"""The feed-forward network against numpy."""

import numpy as np
import pytest
import reference_transformer as reference
from keras import ops

from keras_seq.layers import FeedForward

pytestmark = pytest.mark.jax


def made(**arguments):
    layer = FeedForward(9, name="ff", **arguments)
    layer.build((None, None, 4))
    reference.randomize(layer)
    return layer


def inputs():
    return np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")


@pytest.mark.parametrize(
    ("activation", "function"), [("relu", reference.relu), ("gelu", reference.gelu)]
)
def test_feed_forward_equals_numpy(activation, function):
    layer = made(activation=activation)
    expected = reference.feed_forward(
        inputs().astype("float64"), reference.named_arrays(layer), "ff", function
    )
    np.testing.assert_allclose(layer(inputs()), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("activation", "gate"),
    [
        ("swiglu", lambda x: x / (1 + np.exp(-x))),
        ("geglu", reference.gelu),
        ("reglu", reference.relu),
    ],
)
def test_gated_feed_forward_equals_numpy(activation, gate):
    """Equation 6 of the paper, with biases."""
    layer = made(activation=activation)
    x = inputs().astype("float64")
    arrays = {
        name: array.astype("float64") for name, array in reference.named_arrays(layer).items()
    }
    kernels = np.split(arrays["ff/hidden/kernel"], 2, axis=-1)
    biases = np.split(arrays["ff/hidden/bias"], 2)
    hidden = gate(x @ kernels[0] + biases[0]) * (x @ kernels[1] + biases[1])
    expected = hidden @ arrays["ff/projection/kernel"] + arrays["ff/projection/bias"]
    np.testing.assert_allclose(layer(inputs()), expected, atol=1e-5)
    again = FeedForward.from_config(layer.get_config())
    assert again.get_config()["activation"] == activation


def test_feed_forward_treats_every_step_alike():
    layer, x = made(), inputs()
    np.testing.assert_allclose(layer(x[:, ::-1])[:, ::-1], layer(x), atol=1e-6)


def test_dropout_drops_hidden_units_in_training_only():
    layer = FeedForward(4000, activation="linear", dropout=0.25, seed=5)
    layer.build((None, None, 1))
    # Every hidden unit is 1 and the output is their mean.
    layer.set_weights(
        [np.zeros((1, 4000)), np.ones(4000), np.full((4000, 1), 1 / 4000), np.zeros(1)]
    )
    x = np.zeros((1, 8, 1), "float32")
    np.testing.assert_allclose(layer(x), np.ones((1, 8, 1)), rtol=1e-5)
    dropped = np.asarray(ops.convert_to_numpy(layer(x, training=True)))
    # Kept units are scaled by 1 / 0.75. Five standard deviations of the mean of 4,000 are 0.046.
    assert (abs(dropped - 1) < 0.046).all()
    assert (dropped != 1).all()


@pytest.mark.parametrize("units", [0, -3, 2.5])
def test_invalid_feed_forward_units_raise_value_error(units):
    with pytest.raises(ValueError, match=rf"`units` must be a positive integer.*{units}"):
        FeedForward(units)


def test_invalid_dropout_rate_raises_value_error():
    with pytest.raises(ValueError, match=r"`dropout`.*\[0, 1\).*-1"):
        FeedForward(3, dropout=-1)


def test_unknown_activation_raises_value_error():
    with pytest.raises(ValueError, match=r"`activation`.*gelu.*swiglu.*received 'swigloo'"):
        FeedForward(3, activation="swigloo")


@pytest.mark.parametrize(
    ("shape", "words"),
    [((2, 4), r"`inputs` must have the axes.*\(2, 4\)"), ((2, 3, 5), "4 features.*received 5")],
)
def test_inputs_of_wrong_rank_or_width_raise_value_error(shape, words):
    with pytest.raises(ValueError, match=words):
        made()(np.zeros(shape, "float32"))
