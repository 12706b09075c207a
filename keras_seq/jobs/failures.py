"""What can go wrong with a chunk, and how it is told."""

from __future__ import annotations

import signal

from keras_seq.text import InputError

# A machine that is taken away may cost a chunk its worker once or twice; who costs it three is
# the chunk.
ATTEMPTS = 3


class JobError(RuntimeError):
    """A job that cannot go on; the message names the file and the lines."""

    exit_code = 1


def explained(error: Exception, where: str) -> Exception:
    """An error of a worker as one that can be sent and shown: `FILE lines A to B: what`."""
    if isinstance(error, InputError) or type(error).__name__ == "SettingsError":
        return InputError(str(error))
    name = type(error).__name__
    if isinstance(error, MemoryError) or name in ("ResourceExhaustedError", "XlaRuntimeError"):
        return JobError(
            f"{where}: a worker ran out of memory: give fewer --workers or a lower --batch-size"
        )
    return JobError(f"{where}: {name}: {' '.join(str(error).split())[:300]}")


def ended_too_often(where: str, how: str) -> JobError:
    """The error of a chunk whose worker ended each time."""
    return JobError(
        f"{where}: ended the worker that had it {ATTEMPTS} times ({how}): what else is done is "
        "kept; take these lines out, or look why (memory?), and give the command again"
    )


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        return f"killed by signal {name}"
    return f"exit code {code}"
