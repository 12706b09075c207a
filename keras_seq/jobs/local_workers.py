"""Worker processes on this machine."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, cast

import keras_seq
from keras_seq.jobs.chunks import Chunk, Result, Results, Task
from keras_seq.jobs.failures import ATTEMPTS, JobError, ended_too_often, ending
from keras_seq.jobs.worker_process import receive, send
from keras_seq.operating_system import usable_cores
from keras_seq.text import Notice

# Append to `sys.path`, so that the directory of the package cannot shadow other modules.
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from keras_seq.jobs.worker_process import main; main()"
)
_EXIT_SECONDS = 5.0


def run_locally(
    task: Task, chunks: Iterable[Chunk], *, workers: int | None, notice: Notice
) -> Results:
    """Runs a task on all chunks in processes on this machine; see `Runner`.

    If a process ends unexpectedly, a new process repeats its chunk.
    """
    workers = workers or default_workers(usable_cores())
    waiting = iter(chunks)
    # Start workers on demand, because there may be fewer chunks than workers.
    pool: list[_Worker] = []
    requests: queue.SimpleQueue[Chunk | None] = queue.SimpleQueue()
    replies: queue.SimpleQueue[tuple[Chunk, Result | Exception]] = queue.SimpleQueue()
    threads = max(1, usable_cores() // workers)
    open_requests = 0
    try:
        while True:
            # Queue one extra chunk, so that workers stay busy while the caller stores a result.
            while open_requests <= workers and (chunk := next(waiting, None)) is not None:
                requests.put(chunk)
                open_requests += 1
                if len(pool) < min(open_requests, workers):
                    pool.append(_Worker(task, threads, requests, replies, notice))
            if not open_requests:
                return
            chunk, result = replies.get()
            open_requests -= 1
            if isinstance(result, Exception):
                raise result
            yield chunk, result
    finally:
        for worker in pool:
            worker.stop()
        for _ in pool:
            requests.put(None)
        for worker in pool:
            worker.join()


def default_workers(cores: int) -> int:
    return max(1, cores // 4)


class _Worker:
    """A worker process and its thread, which sends chunks and replaces the process if it dies."""

    def __init__(
        self,
        task: Task,
        threads: int,
        requests: queue.SimpleQueue[Chunk | None],
        replies: queue.SimpleQueue[tuple[Chunk, Result | Exception]],
        notice: Notice,
    ) -> None:
        self._start = (task, threads)
        self._requests = requests
        self._replies = replies
        self._notice = notice
        self._stopping = False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: Any = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            if self._process is not None:
                self._process.kill()

    def join(self) -> None:
        self._thread.join(_EXIT_SECONDS)

    def _serve(self) -> None:
        try:
            while (chunk := self._requests.get()) is not None and not self._stopping:
                try:
                    self._replies.put((chunk, self._try(chunk)))
                except Exception as error:
                    self._replies.put((chunk, error))
        finally:
            self._end_process()

    def _try(self, chunk: Chunk) -> Result | Exception:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                process = self._running_process()
                send(cast(IO[bytes], process.stdin), chunk)
                answer: Result | Exception = receive(cast(IO[bytes], process.stdout))
                return answer
            except (EOFError, OSError) as error:
                if self._process is None:
                    return JobError(f"{chunk.where}: no worker can be started: {error}")
            how = self._end_process()
            if self._stopping:
                break
            if attempt < ATTEMPTS:
                self._notice(f"{chunk.where}: the worker ended ({how}); another one repeats them")
        return ended_too_often(chunk.where, how)

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            package = str(Path(keras_seq.__file__).resolve().parents[1])
            with self._lock, contextlib.ExitStack() as undo:
                if self._stopping:
                    raise OSError("the job is ending")
                self._stderr = undo.enter_context(tempfile.TemporaryFile())
                self._process = subprocess.Popen(
                    # -P: files in the current directory must not shadow modules.
                    [sys.executable, "-P", "-c", _START, package],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._stderr,
                    # In a new session, Ctrl-C does not interrupt the worker process.
                    start_new_session=True,
                )
                undo.pop_all()
            send(cast(IO[bytes], self._process.stdin), self._start)
        return self._process

    def _end_process(self) -> str:
        """Ends the process; returns a description of its exit, with its last line on stderr."""
        process = self._process
        if process is None:
            return "never started"
        # `close` flushes the buffer, which raises an error if the process has ended.
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                cast(IO[bytes], stream).close()
        try:
            code = process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        with self._lock:
            self._process = None
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", "replace").strip().split("\n")
        self._stderr.close()
        return ending(code) + (f": {lines[-1][:300]}" if code > 0 and lines[-1] else "")
