"""Errors of jobs and their messages."""

from __future__ import annotations

import signal

from keras_seq.process.memory import is_out_of_memory
from keras_seq.text import InputError

# Maximum number of attempts per chunk, because a chunk may crash its worker every time.
ATTEMPTS = 3


class JobError(RuntimeError):
    """Raised if a job cannot continue, for example because workers run out of memory."""

    exit_code = 1


def explained(error: Exception, where: str) -> Exception:
    """Converts an error in a worker to a picklable error with a message for the user."""
    name = type(error).__name__
    if isinstance(error, InputError) or name == "SettingsError":
        return InputError(str(error))
    if is_out_of_memory(error):
        return JobError(
            f"{where}: a worker ran out of memory: give fewer --workers or a lower --batch-size"
        )
    return JobError(f"{where}: {name}: {' '.join(str(error).split())[:300]}")


def ended_too_often(where: str, how: str) -> JobError:
    """Returns the error for a chunk whose worker ended in every attempt."""
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
