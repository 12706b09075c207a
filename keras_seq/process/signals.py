"""Ends the program on a signal without raising exceptions inside fragile libraries."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType

# Maximum wait for a safe point. After it the process ends without cleaning up.
GRACE_SECONDS = 2.5
_OWN = {"keras_seq", "keras_seq_cli"}
# These libraries call Python from C code that does not check for exceptions. An exception while
# TensorFlow records gradients causes a segmentation fault.
_FRAGILE = {"jax", "keras", "tensorflow", "torch"}


class _Deferred:
    """Action to run at the next safe point, and a timer that ends the process if none comes."""

    action: Callable[[], object] | None = None
    timer: threading.Timer | None = None


def raise_outside_libraries(
    frame: FrameType | None, action: Callable[[], object], exit_code: int | None = None
) -> None:
    """Calls `action` now or, if a library is running, at the next safe point.

    `frame` is the frame that the signal interrupted. `action` is called once; it usually raises.
    If no safe point is reached within `GRACE_SECONDS`, the process ends with `exit_code`, if any.
    """
    if not _in_a_library(frame):
        action()
        return
    _Deferred.action = action
    if exit_code is not None and _Deferred.timer is None:
        _Deferred.timer = threading.Timer(GRACE_SECONDS, exit_after, (None, exit_code))
        _Deferred.timer.daemon = True
        _Deferred.timer.start()


def safe_point() -> None:
    """Calls the action of a signal that came while a library was running.

    Called after each call of a compiled function. In threads other than the main thread, nothing
    happens.
    """
    action = _Deferred.action
    if action is not None and threading.current_thread() is threading.main_thread():
        forget_deferred()
        action()


def forget_deferred() -> None:
    """Drops the action that waits for a safe point, if there is one."""
    _Deferred.action = None
    if _Deferred.timer is not None:
        _Deferred.timer.cancel()
        _Deferred.timer = None


def exit_after(action: Callable[[], None] | None, code: int) -> None:
    """Runs an action, flushes the output and ends the process, even if an operation hangs.

    The main thread may hold a lock that the action needs.
    """

    def finish() -> None:
        if action is not None:
            action()
        sys.stdout.flush()
        sys.stderr.flush()

    thread = threading.Thread(target=finish, daemon=True)
    thread.start()
    thread.join(0.5)
    os._exit(code)


def end_with_stdin() -> None:
    """Ends this process when its standard input is closed.

    The parent process holds the other end and never writes to it, so this process ends with its
    parent, however the parent ends.
    """

    def wait() -> None:
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _in_a_library(frame: FrameType | None) -> bool:
    """Tests if a `_FRAGILE` package is running: if no `_OWN` frame is further in on the stack."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _OWN | _FRAGILE:
            return package in _FRAGILE
        frame = frame.f_back
    return False
