"""Settings of glibc's memory allocator."""

from __future__ import annotations

import ctypes
import sys

# Constants of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Tells glibc's malloc to keep large freed blocks for reuse; otherwise, does nothing.

    By default, glibc returns blocks of several megabytes to the system. Each update of a training
    would then page in and zero some hundred megabytes again.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
