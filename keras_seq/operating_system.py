"""Hides what differs between Linux, macOS and Windows from all other modules.

keras-seq is tested on Linux. On macOS and Windows it is untested; the tests only simulate what
these systems lack.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import signal
import socket
import sys
import unicodedata
from pathlib import Path
from typing import Any

fcntl: Any = None
msvcrt: Any = None
resource: Any = None
# Python on Windows has `msvcrt` instead of the other two.
with contextlib.suppress(ImportError):
    import fcntl
with contextlib.suppress(ImportError):
    import msvcrt
with contextlib.suppress(ImportError):
    import resource

# Flags of `os.open`. Windows has neither; links need a privilege there, and pipes are no files.
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# Without it, opening a pipe without a writer blocks forever.
NO_BLOCK = getattr(os, "O_NONBLOCK", 0)
# The signal of timers, which Windows lacks.
ALARM: int | None = getattr(signal, "SIGALRM", None)
# Exit codes of processes that a signal ended.
KILLED = -getattr(signal, "SIGKILL", 9)
CRASHED = tuple(
    -getattr(signal, name) for name in ("SIGABRT", "SIGBUS", "SIGSEGV") if hasattr(signal, name)
)
_WINDOWS_DEVICE = re.compile("CON|PRN|AUX|NUL|CONIN\\$|CONOUT\\$|(COM|LPT)[0-9\xb9\xb2\xb3]")
# Parameters of `mallopt` in glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def lock_file(handle: int, *, wait: bool = False) -> bool:
    """Locks an open file for this process, until the handle is closed.

    Returns False if another process has the lock. With `wait`, waits for that process, on Windows
    for ten seconds at most.
    """
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        elif msvcrt is not None:
            # The lock of one byte, which may lie behind the end of the file.
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    return True


def lock_directory(directory: Path, *, wait: bool = False) -> int | None:
    """Locks a directory, and returns the handle to close; None if that is not possible.

    Windows cannot open directories.
    """
    if fcntl is None:
        return None
    try:
        handle = os.open(directory, os.O_RDONLY | NO_FOLLOW)
    except OSError:
        return None
    if lock_file(handle, wait=wait):
        return handle
    os.close(handle)
    return None


def sync_directory(directory: Path) -> None:
    """Flushes the entries of a directory to the disk. Windows does that by itself."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_read_only(directory: Path) -> bool:
    """Returns True if the file system is known to be mounted for reading only."""
    return hasattr(os, "statvfs") and bool(os.statvfs(directory).f_flag & os.ST_RDONLY)


def folded_name(name: str) -> str:
    """Returns a key that is equal for all names that the system takes for the same file.

    Windows and macOS ignore case, and macOS the Unicode form.
    """
    if os.name != "nt" and sys.platform != "darwin":
        return name
    return unicodedata.normalize("NFC", name).lower()


def keeps_name(name: str) -> bool:
    """Returns False if the system would give a new file another name, or open a device instead.

    Windows strips points and spaces at the end, and has devices such as `NUL`, also as `nul.txt`.
    """
    if os.name != "nt":
        return True
    device = name.partition(".")[0].rstrip().upper()
    return name == name.rstrip(". ") and not _WINDOWS_DEVICE.fullmatch(device)


def refusal_to_write(directory: Path) -> str | None:
    """Returns why the system lets this process create no files in a directory; None if it does."""
    if os.access(directory, os.W_OK | os.X_OK):
        return None
    return os.strerror(errno.EROFS if is_read_only(directory) else errno.EACCES).lower()


def reuse_address(listener: socket.socket) -> None:
    """Lets a server listen where another one has just ended.

    On Windows the option would let it share the port with one that still runs.
    """
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def raise_open_file_limit(maximum: int) -> int:
    """Raises the limit on open files to the system's hard limit, but not beyond `maximum`.

    Sockets count as open files. Returns the limit. A limit above `maximum` stays.
    """
    if resource is None:
        # Windows has no such limit.
        return maximum
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= maximum:
        return maximum
    wanted = maximum if hard == resource.RLIM_INFINITY else min(hard, maximum)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        # macOS may refuse a value below its hard limit.
        return int(soft)
    return wanted


def usable_cores() -> int:
    """Returns the number of cores that this process may use, perhaps fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_memory() -> float:
    """Returns the bytes of memory that the machine has left; infinity where nothing is known."""
    if (available := _kilobytes("/proc/meminfo", "MemAvailable:")) is not None:
        return available * 1024
    # macOS says only how much there is in all.
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float("inf")


def free_address_space() -> float:
    """Returns the bytes of address space that `ulimit -v` leaves; infinity without a limit."""
    used = _kilobytes("/proc/self/status", "VmSize:")
    if used is None or resource is None:
        return float("inf")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return float("inf") if limit == resource.RLIM_INFINITY else max(0.0, limit - used * 1024)


def control_groups() -> str:
    """Returns the names of the control groups of this process; nothing on other systems."""
    with contextlib.suppress(OSError):
        return Path("/proc/self/cgroup").read_text(encoding="utf-8")
    return ""


def memory_of(process: int) -> float:
    """Returns the bytes of memory that a process takes; 0 where nothing is known."""
    return (_kilobytes(f"/proc/{process}/status", "VmRSS:") or 0.0) * 1024


def keep_freed_memory() -> None:
    """Tells glibc's malloc to keep large freed blocks. Does nothing without glibc.

    By default, glibc returns blocks of several megabytes to the system. Each update of a training
    would then page in and zero some hundred megabytes again.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def shared_library(name: str, version: int) -> str:
    """Returns the file name of a shared library.

    >>> "tensorflow_cc" in shared_library("tensorflow_cc", 2)
    True
    """
    if sys.platform == "darwin":
        return f"lib{name}.{version}.dylib"
    if sys.platform == "win32":
        return f"{name}.{version}.dll"
    return f"lib{name}.so.{version}"


def _kilobytes(file: str, name: str) -> float | None:
    """Returns a number from a file of the Linux kernel; None where it is missing."""
    with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(name):
                return float(line.split()[1])
    return None
