"""SIGTERM and Ctrl-C as exceptions, so that what is half done is cleaned up."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from keras_seq.runtime.signals import forget_deferred, raise_outside_libraries, safe_point


@contextlib.contextmanager
def sigterm_exits() -> Iterator[None]:
    """While entered, SIGTERM ends the program with 143, as a shell names that end."""
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
def interrupts_leave_our_code() -> Iterator[None]:
    """While entered, Ctrl-C is a KeyboardInterrupt of our code; a second one of any code.

    Whoever has set a handler of their own keeps it.
    """
    of_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not of_python or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
        safe_point()
    finally:
        # Its timer would end a process that goes on after the command, such as a test run.
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
def leaves_at_once() -> Iterator[None]:
    """While entered, what ends the program ends the process too, without what Python does at last.

    There JAX would crash, where a signal has interrupted it while it compiled.
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
