"""Stops a training when its process receives a signal."""

import signal
from collections.abc import Iterable
from types import FrameType
from typing import Any

import keras


class StopOnSignal(keras.callbacks.Callback):
    """Ends `fit` after the current update when a signal arrives.

    `fit` returns normally, so callbacks save as they do at the end of a training. A second signal
    has the effect that it had before `fit`. `fit` must run in the main thread.

    Args:
        signals: The signals. Defaults to SIGTERM and SIGINT.

    Attributes:
        received: Number of the signal that arrived, or None.

    Example:

    >>> callback = StopOnSignal()
    """

    def __init__(self, signals: Iterable[int] = (signal.SIGTERM, signal.SIGINT)) -> None:
        super().__init__()
        self.signals = tuple(signals)
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def on_train_begin(self, logs: Any = None) -> None:
        self._previous = {number: signal.signal(number, self._handle) for number in self.signals}

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.received is not None:
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        self._restore_handlers()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore_handlers()

    def _restore_handlers(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
