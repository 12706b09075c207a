"""Stops a training on a signal or at a deadline, even in backend code, and loses no update.

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
from collections.abc import Callable
from datetime import datetime
from types import FrameType
from typing import Any

from keras_seq.operating_system import ALARM
from keras_seq.process.signals import exit_after, forget_deferred, raise_outside_libraries

# Seconds for a clean exit once everything is saved. The whole exit may take five seconds.
GRACE_SECONDS = 2.5
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SignalStop:
    """Context manager in which SIGTERM and SIGINT end the training once everything is saved.

    If nothing has changed since the last save, the process ends at once: SIGINT raises
    KeyboardInterrupt and SIGTERM raises SystemExit with code 143, outside library code. If that
    takes longer than `GRACE_SECONDS`, for example because the backend compiles or decodes, a thread
    ends the process. If there are unsaved updates, `agreed` is set, and the next `mark_clean`
    raises. A second signal ends the process immediately. A deadline acts like a signal: SIGALRM
    arrives, and SystemExit with code 142 is raised. Outside the main thread, where Python allows no
    signal handlers, nothing happens.

    Args:
        at: Deadline, or None. Raises ValueError if no timer is available.
        together: Whether other hosts take part in the training. A signal then takes effect at the
            next update, when the hosts agree on it. If the update takes too long, the thread ends
            this process; a deadline waits for the update.

    Attributes:
        received: The signal that this process received, or None.
        agreed: The signal that the training stops for, or None. With several hosts, this is the
            signal that all hosts have agreed on, because a host that stops alone makes the others
            fail.
        raised: The exception raised for the signal, or None.
        on_exit: Called before the thread ends the process, or None.
    """

    def __init__(self, at: datetime | None = None, together: bool = False) -> None:
        self.received: int | None = None
        self.agreed: int | None = None
        self.raised: BaseException | None = None
        self.on_exit: Callable[[], None] | None = None
        self._together = together
        self._at = at
        self._clean_since: float | None = time.monotonic()
        self._previous: list[Any] = []
        self._installed = threading.current_thread() is threading.main_thread()
        self._signals: tuple[int, ...] = _SIGNALS
        if at is not None:
            if ALARM is None or not self._installed:
                raise ValueError(
                    "a time to stop at needs a POSIX system and the main thread: leave it out, "
                    "or set a limit such as training.max_minutes"
                )
            self._signals = (*_SIGNALS, ALARM)

    @property
    def reason(self) -> str:
        """The reason why the training ended, for a message."""
        return "the time is up" if self.agreed == ALARM else "stopped by a signal"

    def __enter__(self) -> SignalStop:
        if self._installed:
            self._reader, self._writer = socket.socketpair()
            self._writer.setblocking(False)
            self._previous = [signal.signal(number, self._handle) for number in self._signals]
            # C code writes the byte immediately, even if the interpreter is busy.
            descriptor = self._writer.fileno()
            self._old_wakeup = signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
            self._old_hook = sys.unraisablehook
            sys.unraisablehook = self._ignore_raised
            if self._at is not None:
                # A timer of zero seconds would never fire.
                seconds = max(self._at.timestamp() - time.time(), 0.001)
                signal.setitimer(signal.ITIMER_REAL, seconds)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            forget_deferred()
            if self._at is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
            sys.unraisablehook = self._old_hook
            signal.set_wakeup_fd(self._old_wakeup)
            for number, handler in zip(self._signals, self._previous, strict=True):
                signal.signal(number, handler)
            self._writer.close()
            self._watcher.join()
            self._reader.close()

    def mark_dirty(self) -> None:
        """Records that an update is not saved yet."""
        self._clean_since = None

    def mark_clean(self) -> None:
        """Records that all updates are saved. If a signal was received, raises its exception."""
        if self._clean_since is None:
            self._clean_since = time.monotonic()
        self._raise_if_clean()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # A second signal kills the process, except after the alarm: a batch queue may send its own
        # signal while the training saves because of the alarm.
        if self.received is not None:
            if number == ALARM:
                return
            if self.received != ALARM:
                os._exit(128 + number)
        self.received = number
        if self._together:
            return
        self.agreed = number
        if self._clean_since is not None:
            raise_outside_libraries(frame, self._raise_if_clean)

    def _raise_if_clean(self) -> None:
        if self._clean_since is None or self.agreed is None:
            return
        code = 128 + self.agreed
        self.raised = KeyboardInterrupt() if self.agreed == signal.SIGINT else SystemExit(code)
        raise self.raised

    def _ignore_raised(self, unraisable: Any) -> None:
        # The exception was raised where Python discards exceptions, such as in a callback of the
        # garbage collector. The watcher or the next save ends the process.
        if unraisable.exc_value is None or unraisable.exc_value is not self.raised:
            self._old_hook(unraisable)

    def _watch(self) -> None:
        number = self._next_signal(None)
        begin = time.monotonic()
        while number is not None:
            second = self._next_signal(0.05)
            if second not in (None, ALARM):
                if number != ALARM:
                    os._exit(128 + number)
                number, begin = second, time.monotonic()
            if self._writer.fileno() < 0:
                return
            clean_since = self._clean_since
            # To exit now would end the training of all hosts, and a deadline is not urgent.
            waits = self._together and number == ALARM
            if clean_since is not None and not waits:
                if time.monotonic() - max(begin, clean_since) > GRACE_SECONDS:
                    self.agreed = number
                    exit_after(self.on_exit, 128 + number)

    def _next_signal(self, seconds: float | None) -> int | None:
        """Returns the next signal, or None after `seconds` or at the exit from the context."""
        while select.select([self._reader], [], [], seconds)[0]:
            received = self._reader.recv(1)
            if not received:
                return None
            if received[0] in self._signals:
                return received[0]
        return None
