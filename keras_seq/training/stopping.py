"""Ends a training by a signal, or at a time, without losing an update.

Also inside a long call of the backend.

docs/decisions/0007-stopping.md has the reasons.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from datetime import datetime
from types import FrameType
from typing import Any

from keras_seq.runtime.signals import raise_in_our_code

# What a caller gets to end by itself, once all is saved. A process has five seconds in all.
GRACE_SECONDS = 2.5
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# What a timer sends; Windows has none.
_ALARM = getattr(signal, "SIGALRM", None)


class SignalStop:
    """While entered, SIGTERM and SIGINT end the training as soon as all is saved.

    Where nothing has changed since the last save, that is at once: KeyboardInterrupt
    is raised for SIGINT, SystemExit with 143 for SIGTERM, as soon as code of keras-seq runs. If
    Python does not get to it, because the backend compiles or decodes, a thread ends the
    process. Elsewhere
    `pending` is set, and `saved` raises. A second signal ends the process wherever it is.

    A moment is like a signal: SIGALRM comes then, and SystemExit with 142 is raised.

    Outside the main thread, where Python allows no handlers, this does nothing.

    Args:
        at: A moment to end at, or None.
        together: Whether other hosts train with this one. A signal then waits for the next
            update, at which they are told; if that takes too long, the thread ends this process.
            The moment waits for the update as long as that takes.

    Attributes:
        came: The signal that came to this process, None before it.
        pending: The signal to end for: the one that came, or, where other hosts train with this
            one, what is set once all have agreed on it; to end alone would be to fail them.
        raised: What was raised for it, None before that.

    Raises:
        ValueError: If there is to be a moment where no timer can be had.
    """

    def __init__(self, at: datetime | None = None, together: bool = False) -> None:
        self.came: int | None = None
        self.pending: int | None = None
        self.raised: BaseException | None = None
        self._together = together
        self._at = at
        self._clean_since: float | None = time.monotonic()
        self._previous: list[Any] = []
        self._installed = threading.current_thread() is threading.main_thread()
        self._signals: tuple[int, ...] = _SIGNALS
        if at is not None:
            if _ALARM is None or not self._installed:
                raise ValueError(
                    "a moment to stop at needs a POSIX system and the main thread: leave it out, "
                    "or set a limit such as training.max_minutes"
                )
            self._signals = (*_SIGNALS, _ALARM)

    @property
    def reason(self) -> str:
        """What ended the training, for a message."""
        return "the time is up" if self.pending == _ALARM else "stopped by a signal"

    def __enter__(self) -> SignalStop:
        if self._installed:
            self._reader, self._writer = socket.socketpair()
            self._writer.setblocking(False)
            self._previous = [signal.signal(number, self._handle) for number in self._signals]
            # The byte is written by C code at once, whatever the interpreter is doing.
            self._old_wakeup = signal.set_wakeup_fd(
                self._writer.fileno(), warn_on_full_buffer=False
            )
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
            self._old_hook = sys.unraisablehook
            sys.unraisablehook = self._lost
            if self._at is not None:
                # Zero would be no timer at all.
                seconds = max(self._at.timestamp() - time.time(), 0.001)
                signal.setitimer(signal.ITIMER_REAL, seconds)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            if self._at is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
            sys.unraisablehook = self._old_hook
            signal.set_wakeup_fd(self._old_wakeup)
            for number, handler in zip(self._signals, self._previous, strict=True):
                signal.signal(number, handler)
            self._writer.close()
            self._watcher.join()
            self._reader.close()

    def unsaved(self) -> None:
        """An update was made that no checkpoint has."""
        self._clean_since = None

    def saved(self) -> None:
        """The last checkpoint has all there is.

        Raises:
            KeyboardInterrupt: SIGINT has come.
            SystemExit: SIGTERM has come, or the moment.
        """
        if self._clean_since is None:
            self._clean_since = time.monotonic()
        if self.pending is not None:
            self._raise(self.pending)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # The alarm is not one of two: a queue's own signal may come while all is saved for it.
        if self.came is not None:
            if number == _ALARM:
                return
            if self.came != _ALARM:
                os._exit(128 + number)
        self.came = number
        if self._together:
            return
        self.pending = number
        if self._clean_since is not None:
            raise_in_our_code(frame, self._raise_where_all_is_saved)

    def _raise_where_all_is_saved(self) -> None:
        if self._clean_since is not None and self.pending is not None:
            self._raise(self.pending)

    def _lost(self, unraisable: Any) -> None:
        # Raised where Python lets nothing out, as in a callback of the garbage collector: the
        # watcher ends the process, or the next save does.
        if unraisable.exc_value is None or unraisable.exc_value is not self.raised:
            self._old_hook(unraisable)

    def _raise(self, number: int) -> None:
        self.raised = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        raise self.raised

    def _watch(self) -> None:
        number = self._next_signal(None)
        begin = time.monotonic()
        while number is not None:
            second = self._next_signal(0.05)
            if second not in (None, _ALARM):
                if number != _ALARM:
                    os._exit(128 + number)
                number, begin = second, time.monotonic()
            if self._writer.fileno() < 0:
                return
            clean_since = self._clean_since
            # Other hosts would lose this one, and nobody waits for a moment that was chosen.
            waits = self._together and number == _ALARM
            if clean_since is not None and not waits:
                if time.monotonic() - max(begin, clean_since) > GRACE_SECONDS:
                    os._exit(128 + number)

    def _next_signal(self, seconds: float | None) -> int | None:
        """The next signal of ours, None when `seconds` are over or this is left."""
        while select.select([self._reader], [], [], seconds)[0]:
            received = self._reader.recv(1)
            if not received:
                return None
            if received[0] in self._signals:
                return received[0]
        return None
