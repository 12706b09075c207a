"""Raises for a signal, but not where a library's C code would crash on it; and other ends."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_OURS = {"keras_seq", "keras_seq_cli"}
# C code of theirs calls Python and goes on without a look at what that raised. TensorFlow does
# where it records gradients: the process ended with a segmentation fault.
_FRAGILE = {"jax", "keras", "tensorflow"}


def raise_in_our_code(frame: FrameType | None, raises: Callable[[], object]) -> None:
    """Calls what raises: now, or if a library is in the middle of something, after that.

    That is when code of keras-seq goes on, or is called: traced as a debugger would, which costs
    a little and ends with it.

    Args:
        frame: Where the signal found the main thread, as its handler is told.
        raises: Called once. It may think better of it and return.
    """
    if not _in_a_library(frame):
        raises()
        return

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        if _package(frame) in _OURS:
            sys.settrace(None)
            raises()

    outer = frame
    while outer is not None:
        if _package(outer) in _OURS:
            outer.f_trace = trace
        outer = outer.f_back
    sys.settrace(trace)


def end_with_stdin() -> None:
    """Ends this process as soon as nothing can come on its standard input any more.

    Who started it holds the other end and writes nothing, so that it ends with them, however they
    end.
    """

    def wait() -> None:
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _in_a_library(frame: FrameType | None) -> bool:
    """Whether one of the fragile runs, directly or by what it has called of others."""
    while frame is not None:
        package = _package(frame)
        if package in _OURS | _FRAGILE:
            return package in _FRAGILE
        frame = frame.f_back
    return False


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
