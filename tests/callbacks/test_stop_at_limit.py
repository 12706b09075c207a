"""`StopAtLimit` in a user's own `fit`."""

import time

import keras
import numpy as np
import pytest

from keras_seq.callbacks import StopAtLimit

pytestmark = pytest.mark.jax

X, Y = np.ones((12, 2), "float32"), np.ones((12, 1), "float32")


def fit(*callbacks, epochs=5):
    """Trains with 3 updates per epoch and returns the number of updates."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=4, epochs=epochs, verbose=0, callbacks=list(callbacks))
    return int(model.optimizer.iterations)


@pytest.mark.parametrize("max_steps", [1, 3, 4, 11])
def test_stop_at_limit_stops_after_n_updates_even_within_an_epoch(max_steps):
    callback = StopAtLimit(max_steps=max_steps)
    assert fit(callback) == max_steps
    assert callback.step == max_steps


def test_stop_at_limit_without_a_limit_only_counts():
    callback = StopAtLimit()
    assert fit(callback) == 15
    assert callback.step == 15


def test_stop_at_limit_counts_updates_from_initial_step():
    assert fit(StopAtLimit(max_steps=10, initial_step=6)) == 4


def test_stop_at_limit_stops_after_max_minutes():
    class Slow(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.05)

    # The limit of 0.3 s leaves time for few updates of 0.05 s; the first one also compiles.
    assert 1 <= fit(Slow(), StopAtLimit(max_minutes=0.3 / 60), epochs=1000) <= 8


def test_stop_at_limit_stops_at_the_limit_reached_first():
    assert fit(StopAtLimit(max_steps=2, max_minutes=60)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_steps": 0}, "`max_steps` must be positive, received 0"),
        ({"max_minutes": -1.5}, "`max_minutes` must be positive, received -1.5"),
    ],
)
def test_stop_at_limit_rejects_limits_that_are_not_positive(arguments, message):
    with pytest.raises(ValueError, match=message):
        StopAtLimit(**arguments)
