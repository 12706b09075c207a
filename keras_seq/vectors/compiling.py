"""Compiles loops with Numba at the first call, and caches them on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_seq.text import InputError

try:
    import numba
except ImportError:
    raise InputError(
        "training word vectors needs Numba: python -m pip install 'keras-seq[vectors]'"
    ) from None

# Sums may be reordered, which allows vector instructions. Infinities must remain, so that an
# overflow is detected.
_FAST_MATH = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function that releases the GIL."""
    inline = "never" if function.__name__ in ("train_block", "glove_steps") else "always"
    options = dict(nogil=True, fastmath=_FAST_MATH, error_model="numpy", inline=inline)
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:
        # The cache folder is not writable, so each process compiles the function again.
        return numba.njit(function, **options)
