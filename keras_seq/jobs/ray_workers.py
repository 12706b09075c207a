"""Chunks shared out among the workers of a Ray cluster, on one machine or many."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keras_seq.jobs.chunks import Chunk, Notice, Result, Results, Task
from keras_seq.jobs.failures import ATTEMPTS, JobError, ended_too_often, explained
from keras_seq.jobs.local_workers import default_workers
from keras_seq.runtime.threads import usable_cores
from keras_seq.text import InputError

_WAIT_SECONDS = 30.0
_KNOCK_SECONDS = 10.0
# A cluster that ends every worker at its start would be asked for ever.
_STARTS = 3


def require_ray() -> Any:
    """The module `ray`; InputError where it is not installed."""
    # Nothing is sent to the makers of Ray. Workers inherit it.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Else a warning of what a later version will do about GPUs, which are not used here.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise InputError(
            "--engine ray: Ray is not installed: pip install 'keras-seq[ray]'"
        ) from None


def run_on_ray(
    task: Task, chunks: Iterable[Chunk], *, workers: int | None, notice: Notice
) -> Results:
    """Does chunks on a Ray cluster: the one that RAY_ADDRESS names, or a new one on this machine.

    A worker that ends, or is lost with its machine, takes nothing with it: its chunk is given to
    another, and a new worker is asked for.

    Args:
        task: What to do; it is sent to the workers with all it needs.
        chunks: Taken one by one, as there is room.
        workers: How many; None for one for each four cores of the cluster.
        notice: Called with a line for each worker that ended before its time.

    Returns:
        An iterator over chunks and what became of them, in the order of their ends. When it is
        closed the workers end, and so does a cluster that was started for it.

    Raises:
        InputError: While iterating, for what is wrong with the text, or with Ray.
        JobError: While iterating, for a chunk that cannot be done.
    """
    ray = require_ray()
    # Ray tells of a worker's end on stdout, from a thread of its own. Here nobody else writes
    # there; the notices go to stderr and say the same.
    with contextlib.redirect_stdout(io.StringIO()):
        ours = not ray.is_initialized()
        if ours:
            _connect(ray, workers)
        try:
            team = _Team(ray, task, workers, notice)
            try:
                yield from team.run(chunks)
            finally:
                team.dismiss()
        finally:
            if ours:
                ray.shutdown()


def configure_threads(nodes: Sequence[int], workers: int | None) -> tuple[int, int]:
    """How many workers of how many cores each, at most, find room on machines of these cores."""
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
            _knock(address)
            ray.init(address=address, **quiet)
        else:
            # Not "auto", which finds the cluster of another job on this machine, and ends with it.
            cores = max(workers or 1, usable_cores())
            ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())[:300]
        raise InputError(f"--engine ray: no Ray cluster to work on: {said}") from None


def _knock(address: str) -> None:
    """OSError if nobody answers at `host:port`; Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        with socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS):
            pass


class _Worker:
    """An actor: a process somewhere that loads what it needs once."""

    def __init__(self, task: Task, threads: int) -> None:
        self._work: Callable[[Chunk], Result] = task.start(threads)

    def ready(self) -> None:
        """Answers when the process runs."""

    def do(self, chunk: Chunk) -> Result | Exception:
        """Does a chunk."""
        try:
            return self._work(chunk)
        except Exception as error:
            return explained(error, chunk.where)


class _Team:
    """The workers, and who has what."""

    def __init__(self, ray: Any, task: Task, workers: int | None, notice: Notice) -> None:
        nodes = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        if not sum(nodes):
            raise InputError("--engine ray: the cluster has no CPU to work on")
        self._ray = ray
        self._notice = notice
        self._size, self._cores = configure_threads(nodes, workers)
        if workers and self._size < workers:
            notice(f"the cluster has {self._size} CPUs: {self._size} workers, not {workers}")
        # Sent once to each machine, not with each chunk.
        self._task = ray.put(task.portable())
        # What is awaited: a worker's start (no chunk), or what becomes of a chunk.
        self._awaited: dict[Any, tuple[Any, Chunk | None]] = {}
        self._failed_starts = 0
        self._attempts: dict[tuple[int, int], int] = {}
        self._again: list[Chunk] = []
        self._idle: list[Any] = []

    def dismiss(self) -> None:
        """Ends the workers, whatever they are at."""
        for worker in [*self._idle, *(worker for worker, _ in self._awaited.values())]:
            self._ray.kill(worker)

    def run(self, chunks: Iterable[Chunk]) -> Results:
        waiting = iter(chunks)
        following: Chunk | None = next(waiting, None)
        if following is None:
            return
        for _ in range(self._size):
            self._hire()
        while True:
            while self._idle and (self._again or following is not None):
                if self._again:
                    self._give(self._again.pop())
                elif following is not None:
                    self._give(following)
                    following = next(waiting, None)
            at_work = any(chunk is not None for _, chunk in self._awaited.values())
            if not at_work and not self._again and following is None:
                return
            ready, _ = self._ray.wait([*self._awaited], timeout=_WAIT_SECONDS)
            if not ready and not at_work:
                self._notice(f"waiting for the cluster to have {self._cores} free CPUs")
            for reference in ready:
                worker, chunk = self._awaited.pop(reference)
                try:
                    answer = self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    self._bury(worker, chunk, error)
                    continue
                self._idle.append(worker)
                if chunk is None:
                    self._failed_starts = 0
                elif isinstance(answer, Exception):
                    raise answer
                else:
                    yield chunk, answer

    def _hire(self) -> None:
        # Restarts are counted here, so that a chunk that ends its worker is named.
        actor = self._ray.remote(num_cpus=self._cores, max_restarts=0, max_task_retries=0)
        worker = actor(_Worker).remote(self._task, self._cores)
        self._awaited[worker.ready.remote()] = (worker, None)

    def _give(self, chunk: Chunk) -> None:
        worker = self._idle.pop()
        self._awaited[worker.do.remote(chunk)] = (worker, chunk)

    def _bury(self, worker: Any, chunk: Chunk | None, error: Exception) -> None:
        """Puts a new worker in the place of one that ended, and its chunk to the others."""
        # It may be alive on a machine that could not be reached for a while.
        self._ray.kill(worker)
        how = _shortly(error)
        if chunk is None:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise JobError(f"--engine ray: no worker can be started: {how}")
        else:
            place = (chunk.file, chunk.number)
            self._attempts[place] = self._attempts.get(place, 0) + 1
            if self._attempts[place] >= ATTEMPTS:
                raise ended_too_often(chunk.where, how)
            self._again.append(chunk)
            self._notice(f"{chunk.where}: the worker ended ({how}); another begins them again")
        self._hire()


def _shortly(error: Exception) -> str:
    """The part of Ray's words that says what happened."""
    text = " ".join(str(error).split())
    for mark in ("Worker exit detail: ", "The actor is dead because "):
        if mark in text:
            text = text.split(mark, 1)[1]
            break
    return f"{type(error).__name__}: {text.split('. ')[0][:200]}"
