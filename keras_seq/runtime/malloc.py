"""What becomes of memory that is freed; imports nothing heavy."""

from __future__ import annotations

import ctypes
import sys

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MOST_MAPPED = -1, -4


def keep_freed_memory() -> None:
    """Asks the C library to keep large blocks for the next ones, where it is glibc.

    It gives those of more than some megabytes back to the system at once, so that each update
    of a training gets about a hundred megabytes of zeros anew, made page by page.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MOST_MAPPED, 0)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
