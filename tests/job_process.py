"""Runs a job in a separate process and finds, pauses and kills its workers."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil

# Seconds that any step may take, on the slowest machine, before a test fails.
PATIENCE = 300.0


class JobProcess:
    """Runs `keras-seq` in a process; as a context manager, kills all its processes on exit.

    Args:
        out: The output directory of the job.
        kept: Glob pattern in `out` for the chunk results that an unfinished job has stored.
        arguments: Command-line arguments of `keras-seq`.
    """

    def __init__(self, out: Path, kept: str, *arguments: object) -> None:
        self._out = out
        self._kept = kept
        self._said = out.with_suffix(".said")
        self._printed = out.with_suffix(".printed")
        with open(self._said, "ab") as said, open(self._printed, "ab") as printed:
            self.process = psutil.Popen(
                [sys.executable, "-m", "keras_seq", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=said,
            )
        self._started: set[psutil.Process] = set()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        """Kills the job if it still runs, and every process it started, including orphans."""
        with contextlib.suppress(psutil.NoSuchProcess):
            # Otherwise the job would replace the workers that are killed below.
            self.process.suspend()
        left = [self.process, *self._started.union(self._children())]
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()
        deadline = time.monotonic() + 30
        while any(map(_runs, left)):
            assert time.monotonic() < deadline, left
            time.sleep(0.01)

    def _children(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return self.process.children(recursive=True)
        return []

    def workers(self) -> list[psutil.Process]:
        """Finds the worker processes; Ray's workers are recognized by their process names."""
        found = []
        for process in self._children():
            with contextlib.suppress(psutil.Error):
                line = " ".join(process.cmdline())
                # A subprocess of a worker briefly has the worker's command line after the fork.
                is_child = process.ppid() == self.process.pid
                if "ray::_Worker" in line or ("jobs.worker_process" in line and is_child):
                    found.append(process)
        return found

    def wait_for(self, condition):
        """Waits for a truthy `condition()` while the job runs; returns its value."""
        deadline = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert self.process.poll() is None, self._said.read_text()
            assert time.monotonic() < deadline, self._said.read_text()
            time.sleep(0.005)
        return found

    def kept(self) -> list[Path]:
        """Lists the stored results of finished chunks."""
        # The job may delete the directory of a finished file during the search.
        with contextlib.suppress(FileNotFoundError):
            return [*self._out.glob(self._kept)]
        return []

    def stop_one(self) -> psutil.Process:
        """Suspends a worker that holds a chunk, so that the job cannot finish."""

        def stopped():
            # Listing all processes is slow, so wait until the job has stored a result.
            for worker in self.workers() if self.kept() else ():
                with contextlib.suppress(psutil.NoSuchProcess):
                    if not _has_a_chunk(worker):
                        continue
                    worker.suspend()
                    # The worker may have finished its chunk before it was suspended.
                    if _has_a_chunk(worker):
                        return worker
                    worker.resume()

        return self.wait_for(stopped)

    def kill(self) -> None:
        """Kills only the main process and asserts that its workers end by themselves."""
        workers = self.workers()
        self._started.update(self._children())
        self.process.kill()
        self.process.wait()
        for worker in workers:
            with contextlib.suppress(psutil.Error):
                worker.resume()
        # Ray's own processes also end, but some need up to a minute, so only workers count.
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert workers and not alive

    def end(self) -> tuple[int, str]:
        """Waits for the end; returns exit code and stderr, and asserts that stdout is empty."""
        code = self.process.wait(timeout=PATIENCE)
        assert self._printed.read_bytes() == b""
        return code, self._said.read_text()


def _has_a_chunk(worker: psutil.Process) -> bool:
    """Checks whether a worker holds a chunk, or held one a moment ago."""
    # Local workers start with a chunk. Ray puts the running method into a worker's process name,
    # where it stays a moment too long. The name is empty while a process starts or ends.
    name = "".join(worker.cmdline()[:1])
    return bool(name) and (".do" in name or "ray::" not in name)


def _runs(process: psutil.Process) -> bool:
    """Checks whether a process runs and is not a zombie."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
