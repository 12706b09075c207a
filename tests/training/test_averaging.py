"""The moving average of the weights, compared with a manual average."""

import keras
import numpy as np
import pytest

from keras_seq.training.state import averaged_weights

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=(8, 2)).astype("float32")


def made(**optimizer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    # A rate of 0.1 gives weights whose sums and differences are rounded.
    model.compile(keras.optimizers.Adam(0.1, **optimizer), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def update(model):
    model.train_on_batch(X, Y)


def test_averaged_weights_equal_a_moving_average_after_each_update():
    model = made(use_ema=True, ema_momentum=0.7)
    average = None
    for _ in range(5):
        update(model)
        weights = model.get_weights()
        average = (
            weights
            if average is None
            else [0.7 * old + 0.3 * new for old, new in zip(average, weights, strict=True)]
        )
        with averaged_weights(model):
            for got, expected in zip(model.get_weights(), average, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_averaged_weights_restores_weights_and_averages_bit_for_bit():
    model = made(use_ema=True, ema_momentum=0.9)
    for _ in range(3):
        update(model)
    before = [np.array(variable) for variable in model.optimizer.variables]
    weights = model.get_weights()
    seen = []
    for _ in range(3):
        with averaged_weights(model):
            seen.append(model.get_weights())
    for got, expected in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(got, expected)
    for variable, expected in zip(model.optimizer.variables, before, strict=True):
        np.testing.assert_array_equal(np.array(variable), expected)
    for got, expected in zip(seen[2], seen[0], strict=True):
        np.testing.assert_array_equal(got, expected)


def test_averaged_weights_restores_the_weights_after_an_error():
    model = made(use_ema=True)
    update(model)
    update(model)
    weights = model.get_weights()
    with pytest.raises(RuntimeError, match="in the middle"), averaged_weights(model):
        raise RuntimeError("in the middle")
    for got, expected in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_averaged_weights_before_the_first_update_keeps_the_weights():
    model = made(use_ema=True)
    weights = model.get_weights()
    with averaged_weights(model):
        for got, expected in zip(model.get_weights(), weights, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_averaged_weights_without_ema_keeps_the_weights():
    model = made()
    update(model)
    weights = model.get_weights()
    with averaged_weights(model):
        for got, expected in zip(model.get_weights(), weights, strict=True):
            np.testing.assert_array_equal(got, expected)
