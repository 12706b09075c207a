"""Stops a training when the process is asked to end."""

import signal

import keras


class StopOnSignal(keras.callbacks.Callback):
    """Lets `fit` end after the running update when a signal comes.

    `fit` then returns as if it were done, and callbacks save as they do at the end.
    A second signal does what it did before `fit`. `fit` must run in the main
    thread.

    Args:
        signals: Which; SIGTERM and SIGINT by default.

    Attributes:
        received: Number of the signal that came, None without one.

    Example:

    >>> callback = StopOnSignal()
    """

    def __init__(self, signals=(signal.SIGTERM, signal.SIGINT)):
        super().__init__()
        self.signals = tuple(signals)
        self.received = None
        self._previous = {}

    def on_train_begin(self, logs=None):
        self._previous = {number: signal.signal(number, self._handle) for number in self.signals}

    def on_train_batch_end(self, batch, logs=None):
        if self.received is not None:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self._put_back()

    def _handle(self, number, frame):
        self.received = number
        self._put_back()

    def _put_back(self):
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
