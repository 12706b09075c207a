"""Chunks shared out among processes of this machine, each of which may be killed."""

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
from keras_seq.jobs.chunks import Chunk, Notice, Result, Results, Task
from keras_seq.jobs.failures import ATTEMPTS, JobError, ended_too_often, ending
from keras_seq.jobs.worker_process import receive, send
from keras_seq.runtime.threads import usable_cores

# Appended, so that it hides nothing; where keras_seq is installed it is there already.
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from keras_seq.jobs.worker_process import main; main()"
)
_PATIENCE_SECONDS = 5.0


def run_locally(
    task: Task, chunks: Iterable[Chunk], *, workers: int | None, notice: Notice
) -> Results:
    """Does chunks in processes of this machine.

    A worker that ends takes nothing with it: its chunk is given to a new one.

    Args:
        task: What to do.
        chunks: Taken one by one, as there is room.
        workers: How many processes; None for one for each four cores.
        notice: Called with a line for each worker that ended before its time.

    Returns:
        An iterator over chunks and what became of them, in the order of their ends. When it is
        closed the processes end.

    Raises:
        InputError: While iterating, for what is wrong with the text.
        JobError: While iterating, for a chunk that cannot be done.
    """
    workers = workers or default_workers(usable_cores())
    waiting = iter(chunks)
    # Started only as there is work for them.
    team: list[_Worker] = []
    requests: queue.SimpleQueue[Chunk | None] = queue.SimpleQueue()
    replies: queue.SimpleQueue[tuple[Chunk, Result | Exception]] = queue.SimpleQueue()
    threads = max(1, usable_cores() // workers)
    given = 0
    try:
        while True:
            # One more than there are workers, so that none waits while a result is put away.
            while given <= workers and (chunk := next(waiting, None)) is not None:
                requests.put(chunk)
                given += 1
                if len(team) < min(given, workers):
                    team.append(_Worker(task, threads, requests, replies, notice))
            if not given:
                return
            chunk, result = replies.get()
            given -= 1
            if isinstance(result, Exception):
                raise result
            yield chunk, result
    finally:
        for worker in team:
            worker.stop()
        for _ in team:
            requests.put(None)
        for worker in team:
            worker.join()


def default_workers(cores: int) -> int:
    """How many workers share so many cores, where nobody said."""
    return max(1, cores // 4)


class _Worker:
    """A process, and the thread that gives it chunks and starts it anew if it ends."""

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
        self._said: Any = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the process, whatever it is at."""
        with self._lock:
            self._stopping = True
            if self._process is not None:
                self._process.kill()

    def join(self) -> None:
        """Waits for the end."""
        self._thread.join(_PATIENCE_SECONDS)

    def _serve(self) -> None:
        try:
            while (chunk := self._requests.get()) is not None and not self._stopping:
                try:
                    self._replies.put((chunk, self._try(chunk)))
                except Exception as error:
                    self._replies.put((chunk, error))
        finally:
            self._bury()

    def _try(self, chunk: Chunk) -> Result | Exception:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                process = self._ready()
                send(cast(IO[bytes], process.stdin), chunk)
                answer: Result | Exception = receive(cast(IO[bytes], process.stdout))
                return answer
            except (EOFError, OSError) as error:
                if self._process is None:
                    return JobError(f"{chunk.where}: no worker can be started: {error}")
            how = self._bury()
            if self._stopping:
                break
            if attempt < ATTEMPTS:
                self._notice(f"{chunk.where}: the worker ended ({how}); another begins them again")
        return ended_too_often(chunk.where, how)

    def _ready(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            package = str(Path(keras_seq.__file__).resolve().parents[1])
            with self._lock, contextlib.ExitStack() as undo:
                if self._stopping:
                    raise OSError("the job is at its end")
                self._said = undo.enter_context(tempfile.TemporaryFile())
                self._process = subprocess.Popen(
                    # -P: a file of the user's in this directory may have the name of a module.
                    [sys.executable, "-P", "-c", _START, package],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._said,
                    # So that Ctrl-C reaches the one who started it alone.
                    start_new_session=True,
                )
                undo.pop_all()
            send(cast(IO[bytes], self._process.stdin), self._start)
        return self._process

    def _bury(self) -> str:
        """Ends the process if it has not ended, and says how it did and what it said last."""
        process = self._process
        if process is None:
            return "never started"
        for stream in (process.stdin, process.stdout):
            # What could not be written any more is written by `close`.
            with contextlib.suppress(OSError):
                cast(IO[bytes], stream).close()
        try:
            code = process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        with self._lock:
            self._process = None
        self._said.seek(0)
        words = self._said.read().decode("utf-8", "replace").strip().split("\n")
        self._said.close()
        return ending(code) + (f": {words[-1][:300]}" if code > 0 and words[-1] else "")
