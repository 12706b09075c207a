"""`StopAtTime` in a user's own `fit`."""

import datetime
import time

import keras
import numpy as np
import pytest

from keras_seq.callbacks import Checkpoint, StopAtTime

X, Y = np.ones((12, 2), "float32"), np.ones((12, 1), "float32")


class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.05)


def fit(*callbacks, epochs=1000):
    """Trains with 3 updates per epoch and returns the number of updates."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=4, epochs=epochs, verbose=0, callbacks=list(callbacks))
    return int(model.optimizer.iterations)


@pytest.mark.slow
def test_stop_at_time_ends_fit_after_its_minutes_and_checkpoint_saves():
    saved = []
    callback = StopAtTime(minutes=3 / 60)
    begin = time.monotonic()
    steps = fit(Slow(), callback, Checkpoint(saved.append, every=10**6))
    assert 3 <= time.monotonic() - begin < 60
    # 60 updates sleep for 3 s in total.
    assert 1 <= steps <= 60
    assert saved == [steps] and callback.reached


@pytest.mark.slow
@pytest.mark.parametrize("zone", [None, datetime.UTC, datetime.timezone(datetime.timedelta(0, -9))])
def test_stop_at_time_ends_fit_at_a_moment_in_any_time_zone(zone):
    moment = datetime.datetime.now(zone) + datetime.timedelta(seconds=1)
    callback = StopAtTime(at=moment)
    assert not callback.reached
    assert fit(Slow(), callback) <= 20
    assert 0 <= (datetime.datetime.now(zone) - moment).total_seconds() < 60


def test_stop_at_time_in_the_past_still_makes_one_update():
    past = datetime.datetime.now() - datetime.timedelta(days=1)
    assert fit(StopAtTime(at=past)) == 1


@pytest.mark.jax
def test_stop_at_time_calls_on_time_instead_of_stopping():
    told = []
    callback = StopAtTime(minutes=1e-9, on_time=lambda: told.append(True))
    assert fit(callback, epochs=2) == 6
    assert len(told) == 6


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "either `minutes` or `at`"),
        ({"minutes": 1, "at": datetime.datetime.now()}, ValueError, "either `minutes` or `at`"),
        ({"minutes": 0}, ValueError, "`minutes` must be positive, received 0"),
        ({"minutes": float("nan")}, ValueError, "`minutes` must be positive, received nan"),
        ({"at": "05:30"}, TypeError, "`at` must be a datetime.datetime, received '05:30'"),
    ],
)
def test_stop_at_time_rejects_invalid_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        StopAtTime(**arguments)
