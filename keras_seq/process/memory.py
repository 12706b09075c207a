"""The memory that this process may use, and checks before something large is made."""

from __future__ import annotations

import os

from keras_seq import operating_system
from keras_seq.process.control_groups import memory_of_groups
from keras_seq.text import InputError

VARIABLE = "KERAS_SEQ_MAX_MEMORY"
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def free_memory() -> float:
    """Returns the bytes that this process may still take.

    The machine, its container, `ulimit -v` and `KERAS_SEQ_MAX_MEMORY` limit them. The variable is a
    number of bytes, or of K, M, G or T, such as `8G`. The result is infinite where nothing is
    known.
    """
    free = min(
        operating_system.free_memory(),
        operating_system.free_address_space(),
        memory_of_groups(operating_system.control_groups()),
    )
    if (value := os.environ.get(VARIABLE)) is not None:
        free = min(free, _parse(value))
    return free


def require_memory(size: float, what: str, advice: str) -> None:
    """Raises InputError if something of at least `size` bytes does not fit into the free memory.

    Args:
        size: A lower bound, so that nothing is refused that would have fit.
        what: What takes the memory, such as "a model of 4 parameters".
        advice: What to do instead.
    """
    free = free_memory()
    if size > free:
        raise InputError(
            f"{what} needs more than {shown_size(size)} of memory, {shown_size(free)} are free: "
            f"{advice}"
        )


def shown_size(size: float) -> str:
    """Returns a number of bytes as text.

    >>> shown_size(3 << 29)
    '1.5 GB'
    """
    return f"{size / (1 << 30):,.1f} GB" if size >= 1 << 30 else f"{size / (1 << 20):,.1f} MB"


def _parse(value: str) -> float:
    number, unit = value.strip().upper().removesuffix("B"), 1
    if number[-1:] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    try:
        size = float(number) * unit
    except ValueError:
        size = -1.0
    if not 0 < size < float("inf"):
        raise InputError(
            f"{VARIABLE}: received {value[:40]!r}, expected a number of bytes such as 8G"
        )
    return size


def is_out_of_memory(error: BaseException) -> bool:
    """Returns True if an error of a backend or of Python means that memory ran out."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ in ("ResourceExhaustedError", "OutOfMemoryError")
        or "RESOURCE_EXHAUSTED" in str(error)
        # Torch on a CPU.
        or "can't allocate memory" in str(error)
        # TensorFlow uses oneDNN on CPUs, whose status 1 is `dnnl_out_of_memory`.
        or (type(error).__name__ == "AbortedError" and "Status: 1," in str(error))
    )
