"""Trains a run in a separate process, so that no crash and no lack of memory ends the caller."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple, cast

import keras_seq
from keras_seq.text import Notice

# Append to `sys.path`, so that the directory of the package cannot shadow other modules.
_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from keras_seq.process.signals import end_with_stdin; end_with_stdin(); "
    "from keras_seq.tuning.trained_run import main; sys.exit(main())"
)
# A training saves within five seconds of SIGTERM; a large model may take longer.
_EXIT_SECONDS = 20.0
_MAX_REASON = 300


class Ending(NamedTuple):
    """The exit code of a training, as `keras-seq train` has it, and the last line of an error."""

    code: int
    reason: str = ""


# Trains the run in a directory, with the settings in that directory.
Train = Callable[[Path, Notice], Ending]


def train_in_process(run: Path, notice: Notice) -> Ending:
    """Trains the prepared run in a directory, in a separate process.

    If an exception such as KeyboardInterrupt ends the call, the process saves all updates first.
    If the caller is killed, the process ends, and the run is as after a kill.

    Args:
        run: The run directory. Its lock must be free.
        notice: Function that receives a line about a validation, every ten seconds or less often.

    Raises:
        SystemExit: If the process was stopped by a signal from elsewhere.
    """
    package = str(Path(keras_seq.__file__).resolve().parents[1])
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            # -P: files in the current directory must not shadow modules.
            [sys.executable, "-P", "-c", _START, package, str(run)],
            # The process ends when its stdin is closed.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # In a new session, Ctrl-C does not interrupt the process before the caller.
            start_new_session=True,
        )
        try:
            for line in cast(IO[bytes], process.stdout):
                notice(line.decode("utf-8", "replace").rstrip("\n"))
            code = process.wait()
        except (KeyboardInterrupt, SystemExit):
            _end(process)
            notice("stopped: the same command resumes from there")
            raise
        finally:
            _end(process)
        errors.seek(0)
        lines = errors.read().decode("utf-8", "replace").split("\n")
    if code in (-signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT):
        raise SystemExit(128 + signal.SIGTERM)
    reason = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if code < 0:
        reason = f"the process ended with {signal.Signals(-code).name}"
    return Ending(code, reason[:_MAX_REASON] if code else "")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that is still running, after it has saved all updates."""
    try:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_SECONDS)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            cast(IO[bytes], stream).close()
