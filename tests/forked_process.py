"""Runs code in a fork of a process that has imported TensorFlow, to save the time of the import.

The import takes six processor seconds, as long as many of the small trainings of the tests.
"""

import functools
import io
import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.connection import Connection

# TensorFlow starts no threads until it computes something, so that a fork is safe.
_PRELOADED = ["keras_seq.training", "keras_seq.inference.translator"]


@functools.cache
def _context() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


class ForkedProcess:
    """A process with the methods and attributes of `subprocess.Popen` that the tests use.

    Args:
        script: Python code to run as the main program.
        arguments: Its arguments.
        environment: Its environment variables. TensorFlow and Keras have already read theirs.
    """

    def __init__(self, script: str, arguments: list[str], environment: dict[str, str]) -> None:
        reader, writer = _context().Pipe(duplex=False)
        self._process = _context().Process(
            target=_run, args=(script, arguments, environment, writer), daemon=True
        )
        self._process.start()
        writer.close()
        self.pid = self._process.pid
        self.stderr = os.fdopen(os.dup(reader.fileno()), encoding="utf-8")
        reader.close()

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired("forked process", timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(
    script: str, arguments: list[str], environment: dict[str, str], errors: Connection
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (nothing, 1), (errors.fileno(), 2)):
        os.dup2(source, target)
    errors.close()
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", buffering=0, closefd=False),
        encoding="utf-8",
        errors="backslashreplace",
        write_through=True,
    )
    sys.argv = ["-c", *arguments]
    exec(compile(script, "<string>", "exec"), {"__name__": "__main__"})
