"""Errors of a job and their messages."""

from __future__ import annotations

import signal

from keras_seq.text import InputError

# A chunk may lose its worker once or twice by chance. After three times the chunk is the cause.
ATTEMPTS = 3


class JobError(RuntimeError):
    """Raised if a job cannot continue; the message names the file and the lines."""

    exit_code = 1


def explained(error: Exception, where: str) -> Exception:
    """Returns an error of a worker as a picklable one with the message `FILE lines A to B: ...`."""
    name = type(error).__name__
    if isinstance(error, InputError) or name == "SettingsError":
        return InputError(str(error))
    if isinstance(error, MemoryError) or name in ("ResourceExhaustedError", "XlaRuntimeError"):
        return JobError(
            f"{where}: a worker ran out of memory: give fewer --workers or a lower --batch-size"
        )
    return JobError(f"{where}: {name}: {' '.join(str(error).split())[:300]}")


def ended_too_often(where: str, how: str) -> JobError:
    """Returns the error for a chunk that ended all its workers."""
    return JobError(
        f"{where}: the worker ended {ATTEMPTS} times ({how}). All other results are stored: "
        "remove these lines, or find the cause (memory?), and run the command again"
    )


def ending(code: int) -> str:
    """Describes the exit code of a process."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by signal {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
