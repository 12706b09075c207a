"""The main function of a process that trains one run; see `training_process`."""

from __future__ import annotations

import os
import sys
import time

from keras_seq.process.optional_packages import without_optional_packages
from keras_seq.process.threads import configure_training_threads
from keras_seq.run import Run
from keras_seq.text import InputError

_VALIDATION = "validation at step"
# Seconds between two reports of a validation.
_SECONDS = 10.0


def main() -> int:
    """Trains the run in the directory `sys.argv[1]`; returns the exit code of `keras-seq train`."""
    # Redirect the output of libraries to stderr, because stdout is the pipe to the caller.
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    configure_training_threads()

    next_report = time.monotonic() + _SECONDS

    def notice(line: str) -> None:
        nonlocal next_report
        sys.stderr.write(f"{line}\n")
        if line.startswith(_VALIDATION) and time.monotonic() >= next_report:
            next_report = time.monotonic() + _SECONDS
            reports.write(f"{line}\n")
            reports.flush()

    try:
        run = Run.open(sys.argv[1])
    except InputError as error:
        return _report(error, 2)
    # Import Keras only after the threads are configured.
    with without_optional_packages():
        from keras_seq.process.memory import is_out_of_memory
        from keras_seq.training import TrainingError, train

    try:
        train(run.settings, run, notice=notice)
    except TrainingError as error:
        return _report(error, error.exit_code)
    except InputError as error:
        return _report(error, 2)
    except Exception as error:
        return _report(error, 4 if is_out_of_memory(error) else 1)
    return 0


def _report(error: Exception, code: int) -> int:
    """Prints an error on one line, and returns the exit code."""
    sys.stderr.write(f"{' '.join(str(error).split()) or type(error).__name__}\n")
    return code
