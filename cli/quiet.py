"""Imports modules that need Keras, and hides TensorFlow's log lines."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from keras_seq.process.optional_packages import without_optional_packages

_LOG_LINE = re.compile(
    rb"[IWE]\d{4} \d\d:\d\d:\d\d[.]|[IWE]0000 00:00:"
    rb"|WARNING: All log messages before absl|To enable the following instructions"
    # Lines of the converter to LiteRT.
    rb"|INFO: Created TensorFlow Lite|loc\(|error: failed while converting"
    rb"|Some ops are not supported|TF Select ops|Details:|\ttf[.]"
)


def import_quietly(name: str, initialize: Callable[[], None] | None = None) -> Any:
    """Imports a module that needs Keras and initializes the backend, without log lines.

    TensorFlow writes log lines before it reads TF_CPP_MIN_LOG_LEVEL, so the variable alone does not
    hide all log lines. If the user sets the variable to 0, all lines are shown.

    Args:
        name: Name of the module.
        initialize: Function that initializes the backend; by default, a Keras operation is run.
    """
    imported = "keras" in sys.modules
    with _quiet():
        with fast_import():
            module = importlib.import_module(name)
        if initialize is not None:
            initialize()
        elif "keras" in sys.modules and not imported:
            # Run one operation now, because the first operation writes log lines about devices.
            sys.modules["keras"].ops.zeros(1)
    return module


def _quiet() -> contextlib.AbstractContextManager[None]:
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Log lines appear when Keras is imported.
    if level == "0" or "keras" in sys.modules:
        return contextlib.nullcontext()
    return without_log_lines()


@contextlib.contextmanager
def quiet_import() -> Iterator[None]:
    """Hides log lines of Keras within this context, and imports Keras first.

    A plugin may need the packages that are hidden while Keras is imported.
    """
    with _quiet():
        with fast_import():
            importlib.import_module("keras_seq.backend")
        yield


@contextlib.contextmanager
def fast_import() -> Iterator[None]:
    """Speeds up the import of Keras within this context."""
    if "keras" in sys.modules:
        yield
        return
    with without_optional_packages(), _without_garbage_collection():
        yield


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pauses garbage collection, and excludes the imported objects from later collections.

    The import creates half a million objects that are never freed. Scanning them would take a tenth
    of the import time, and half a second at the end of each `fit`.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


@contextlib.contextmanager
def without_log_lines() -> Iterator[None]:
    """Removes TensorFlow's log lines from stderr within this context."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as captured:
        terminal = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            captured.seek(0)
            for line in captured:
                if not _LOG_LINE.match(line):
                    os.write(2, line)
