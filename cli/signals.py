"""Converts SIGTERM and Ctrl-C to exceptions, so that interrupted commands clean up."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from keras_seq.process.signals import forget_deferred, raise_outside_libraries, safe_point


@contextlib.contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Converts SIGTERM to SystemExit with exit code 143 within this context."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
        safe_point()
    finally:
        forget_deferred()
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def interrupt_outside_libraries() -> Iterator[None]:
    """Delays Ctrl-C within this context until no library code is running.

    A second Ctrl-C raises KeyboardInterrupt immediately. A SIGINT handler of the caller is kept.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_default or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
        safe_point()
    finally:
        # Cancel the timer that ends the process, because the caller may run other code afterwards.
        forget_deferred()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    def leave() -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, signal.default_int_handler)
    raise_outside_libraries(frame, leave, exit_code=130)


def _exit(number: int, frame: FrameType | None) -> None:
    def leave() -> NoReturn:
        sys.exit(128 + number)

    raise_outside_libraries(frame, leave, exit_code=128 + number)


@contextlib.contextmanager
def exit_without_finalizers() -> Iterator[None]:
    """Ends the process without finalizers if SystemExit or KeyboardInterrupt leaves the context.

    The finalizers of JAX crash if a signal has interrupted a compilation.
    """
    try:
        yield
        return
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
