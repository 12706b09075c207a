"""Worker processes on a Ray cluster."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keras_seq.jobs.chunks import Chunk, Result, Results, Task
from keras_seq.jobs.failures import ATTEMPTS, JobError, ended_too_often, explained
from keras_seq.jobs.local_workers import default_workers
from keras_seq.operating_system import usable_cores
from keras_seq.text import InputError, Notice

_WAIT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
# The job fails after this number of consecutive failed worker starts.
_STARTS = 3


def require_ray() -> Any:
    """Imports and returns `ray`; raises InputError if Ray is not installed."""
    # Disable usage statistics here and in the workers, which inherit the environment.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Hide the GPUs, because the workers use CPUs. An explicit value silences a warning of Ray.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    try:
        return importlib.import_module("ray")
    except ImportError:
        message = "--runner ray: Ray is not installed: python -m pip install 'keras-seq[ray]'"
        raise InputError(message) from None


def run_on_ray(
    task: Task, chunks: Iterable[Chunk], *, workers: int | None, notice: Notice
) -> Results:
    """Runs a task on all chunks on a Ray cluster; see `Runner`.

    The workers join the cluster at RAY_ADDRESS. If RAY_ADDRESS is not set, the job starts its own
    cluster on this machine. The task is sent to the workers with the files that it needs. If a
    worker or its machine fails, a new worker starts, and the chunk is repeated.
    """
    ray = require_ray()
    # Discard Ray's messages about ended workers, because `notice` reports ended workers too.
    with contextlib.redirect_stdout(io.StringIO()):
        starts_cluster = not ray.is_initialized()
        if starts_cluster:
            _connect(ray, workers)
        try:
            pool = _WorkerPool(ray, task, workers, notice)
            try:
                yield from pool.run(chunks)
            finally:
                pool.close()
        finally:
            if starts_cluster:
                ray.shutdown()


def split_cores(nodes: Sequence[int], workers: int | None) -> tuple[int, int]:
    """Returns the number of workers and the cores per worker; `nodes` has cores per machine."""
    total = sum(nodes)
    workers = min(workers or default_workers(total), total)
    cores = max(1, total // workers)
    while cores > 1 and sum(node // cores for node in nodes) < workers:
        cores -= 1
    return workers, cores


def _connect(ray: Any, workers: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = os.environ.get("RAY_ADDRESS")
    try:
        if address:
            _check_address(address)
            ray.init(address=address, **quiet)
        else:
            # "auto" would join a cluster of another job, which may end before this job.
            cores = max(workers or 1, usable_cores())
            ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"--runner ray: no Ray cluster is available: {reason}") from None


def _check_address(address: str) -> None:
    """Raises OSError if `host:port` is not reachable; Ray itself would retry for many minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS):
            pass


class _Worker:
    """A Ray actor, which loads the model once and processes many chunks."""

    def __init__(self, task: Task, threads: int) -> None:
        self._work: Callable[[Chunk], Result] = task.start(threads)

    def ready(self) -> None:
        """Does nothing; Ray completes the call as soon as the worker has started."""

    def do(self, chunk: Chunk) -> Result | Exception:
        try:
            return self._work(chunk)
        except Exception as error:
            return explained(error, chunk.where)


class _WorkerPool:
    """The workers of a job, and the chunks assigned to the workers."""

    def __init__(self, ray: Any, task: Task, workers: int | None, notice: Notice) -> None:
        nodes = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        if not sum(nodes):
            raise InputError("--runner ray: the cluster has no CPU to work on")
        self._ray = ray
        self._notice = notice
        self._size, self._cores = split_cores(nodes, workers)
        if workers and self._size < workers:
            notice(f"the cluster has {self._size} CPUs: {self._size} workers, not {workers}")
        # Ray's object store sends the task once to each machine, not with each chunk.
        self._task = ray.put(task.portable())
        # Worker and chunk of each pending call; the chunk is None while the worker starts.
        self._pending: dict[Any, tuple[Any, Chunk | None]] = {}
        self._failed_starts = 0
        self._attempts: dict[tuple[int, int], int] = {}
        self._retries: list[Chunk] = []
        self._idle: list[Any] = []

    def close(self) -> None:
        for worker in [*self._idle, *(worker for worker, _ in self._pending.values())]:
            self._ray.kill(worker)

    def run(self, chunks: Iterable[Chunk]) -> Results:
        waiting = iter(chunks)
        following: Chunk | None = next(waiting, None)
        if following is None:
            return
        for _ in range(self._size):
            self._start_worker()
        while True:
            while self._idle and (self._retries or following is not None):
                if self._retries:
                    self._assign(self._retries.pop())
                elif following is not None:
                    self._assign(following)
                    following = next(waiting, None)
            busy = any(chunk is not None for _, chunk in self._pending.values())
            if not busy and not self._retries and following is None:
                return
            ready, _ = self._ray.wait([*self._pending], timeout=_WAIT_SECONDS)
            if not ready and not busy:
                self._notice(f"waiting for the cluster to have {self._cores} free CPUs")
            for reference in ready:
                worker, chunk = self._pending.pop(reference)
                try:
                    answer = self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    self._replace(worker, chunk, error)
                    continue
                self._idle.append(worker)
                if chunk is None:
                    self._failed_starts = 0
                elif isinstance(answer, Exception):
                    raise answer
                else:
                    yield chunk, answer

    def _start_worker(self) -> None:
        # Disable Ray's own restarts, so that an error can name the chunk that crashed a worker.
        actor = self._ray.remote(num_cpus=self._cores, max_restarts=0, max_task_retries=0)
        worker = actor(_Worker).remote(self._task, self._cores)
        self._pending[worker.ready.remote()] = (worker, None)

    def _assign(self, chunk: Chunk) -> None:
        worker = self._idle.pop()
        self._pending[worker.do.remote(chunk)] = (worker, chunk)

    def _replace(self, worker: Any, chunk: Chunk | None, error: Exception) -> None:
        """Replaces a worker that ended, and queues its chunk again."""
        # The worker may still run if its machine was only unreachable for some time.
        self._ray.kill(worker)
        how = _cause(error)
        if chunk is None:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise JobError(f"--runner ray: no worker can be started: {how}")
        else:
            key = (chunk.file, chunk.number)
            self._attempts[key] = self._attempts.get(key, 0) + 1
            if self._attempts[key] >= ATTEMPTS:
                raise ended_too_often(chunk.where, how)
            self._retries.append(chunk)
            self._notice(f"{chunk.where}: the worker ended ({how}); another one repeats them")
        self._start_worker()


def _cause(error: Exception) -> str:
    """Returns the type of a Ray error and the part of the message that names the cause."""
    text = " ".join(str(error).split())
    for mark in ("Worker exit detail: ", "The actor is dead because "):
        if mark in text:
            text = text.split(mark, 1)[1]
            break
    return f"{type(error).__name__}: {text.split('. ')[0][:200]}"
