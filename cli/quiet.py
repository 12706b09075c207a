"""Heavy imports without what no command needs of them, and without TensorFlow's words."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from typing import Any

_NOISE = re.compile(
    rb"[IWE]\d{4} \d\d:\d\d:\d\d[.]|[IWE]0000 00:00:"
    rb"|WARNING: All log messages before absl|To enable the following instructions"
)
# TensorFlow and Keras import them where they are installed, for converters, pictures and files
# of old formats: a third of the time that the import takes.
_NEEDLESS = {"PIL", "h5py", "jax", "matplotlib", "scipy"}


def import_quietly(name: str, start: Callable[[], None] | None = None) -> Any:
    """Imports a module that imports Keras, and starts its backend.

    Args:
        name: Of the module.
        start: What starts the backend; by default something small is computed.

    TensorFlow logs on the file descriptor before it looks at
    TF_CPP_MIN_LOG_LEVEL, so that variable alone does not silence it. Whoever
    sets it to 0 hears everything.
    """
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    known = "keras" in sys.modules
    with contextlib.nullcontext() if level == "0" or known else without_noise():
        if known:
            module = importlib.import_module(name)
        else:
            with _without_needless(), _nothing_collected():
                module = importlib.import_module(name)
        if start is not None:
            start()
        elif "keras" in sys.modules and not known:
            # Devices are looked for at the first operation, with words of its own.
            sys.modules["keras"].ops.zeros(1)
    return module


class _NotInstalled(MetaPathFinder):
    """Says that needless packages are not there. With JAX as the backend they are not needless."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        # The backend itself is imported first.
        if fullname in _NEEDLESS and "tensorflow" in sys.modules and "jax" not in sys.modules:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@contextlib.contextmanager
def _without_needless() -> Iterator[None]:
    """Whoever imports them later finds them."""
    finder = _NotInstalled()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """No look for garbage among what is imported meanwhile, and none later.

    All of it stays, half a million objects. To look through them takes a tenth of the time of the
    import, and half a second whenever a `fit` ends.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


@contextlib.contextmanager
def without_noise() -> Iterator[None]:
    """Holds back what is written to descriptor 2, then lets through what is no log."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        terminal = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            held.seek(0)
            for line in held:
                if not _NOISE.match(line):
                    os.write(2, line)
