"""`StopOnSignal` in a user's own `fit`."""

import os
import signal

import keras
import numpy as np
import pytest

from keras_seq.callbacks import StopOnSignal

pytestmark = pytest.mark.jax

X, Y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")


class SignalAt(keras.callbacks.Callback):
    """Sends this process a signal from the callback at the end of an update."""

    def __init__(self, update, number):
        super().__init__()
        self.update, self.number, self.updates = update, number, 0

    def on_train_batch_end(self, batch, logs=None):
        self.updates += 1
        if self.updates == self.update:
            os.kill(os.getpid(), self.number)


def fit(*callbacks):
    """Trains for 2 epochs of 4 updates."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=2, epochs=2, verbose=0, callbacks=list(callbacks))


def test_stop_on_signal_ends_after_the_update_and_restores_the_handlers():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    for number in (signal.SIGTERM, signal.SIGINT):
        sender, stop = SignalAt(3, number), StopOnSignal()
        fit(sender, stop)
        assert (sender.updates, stop.received) == (3, number)
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_stop_on_signal_without_a_signal_stops_nothing():
    before = signal.getsignal(signal.SIGTERM)
    sender, stop = SignalAt(100, signal.SIGTERM), StopOnSignal()
    fit(sender, stop)
    assert (sender.updates, stop.received) == (8, None)
    assert signal.getsignal(signal.SIGTERM) is before
