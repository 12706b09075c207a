"""Dynamic batching: requests that arrive at about the same time run as one batch."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from keras_seq.serving.http.errors import TOO_SLOW, RequestError

Arrays = dict[str, np.ndarray]


class Model(Protocol):
    """The methods of `LoadedModel` that batching uses."""

    def run(self, name: str, inputs: Mapping[str, np.ndarray]) -> Arrays: ...

    def hold(self) -> None: ...

    def release(self) -> None: ...


# `eq=False` compares requests by identity, because an array comparison returns an array.
@dataclass(eq=False)
class _PendingRequest:
    """A request in the queue. The first `taken` rows of the request are assigned to batches."""

    inputs: Arrays
    rows: int
    arrived: float
    result: asyncio.Future[Arrays]
    taken: int = 0
    outputs: list[tuple[int, Arrays]] = field(default_factory=list)


@dataclass(eq=False)
class _RequestSlice:
    """The rows `start` to `stop` of a request, which run in the same batch."""

    request: _PendingRequest
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start

    @property
    def inputs(self) -> Arrays:
        request = self.request
        if self.rows == request.rows:
            return request.inputs
        return {name: array[self.start : self.stop] for name, array in request.inputs.items()}


@dataclass(eq=False)
class _RequestQueue:
    """Waiting requests that may share a batch: model, signature and row shapes are equal."""

    model: Model
    signature: str
    requests: deque[_PendingRequest] = field(default_factory=deque)

    @property
    def rows(self) -> int:
        return sum(request.rows - request.taken for request in self.requests)


class Batcher:
    """Runs requests in batches, in order of arrival.

    One event loop calls the batcher; the model runs in threads. Requests share a batch if they
    call the same signature of the same model with rows of the same shape. A batch starts when a
    thread is free, and either the batch is full or its first row has waited for `delay`. Requests
    larger than a batch are split. Batches are padded to a few sizes with copies of their last row,
    so that the model runs with few different shapes. If the model rejects a batch, each request of
    the batch runs separately, so that a bad request does not fail others. If a run reaches its time
    limit, all requests of the batch that are not done fail, because each may take as long again.

    `delay` is in seconds, and `queue_size` is in rows. `threads` is the number of parallel batches.
    `observe` is called with the number of rows and the seconds of each batch.
    """

    def __init__(
        self,
        *,
        batch_size: int,
        delay: float,
        queue_size: int,
        threads: int,
        observe: Callable[[int, float], None] = lambda rows, seconds: None,
    ) -> None:
        self._batch_size, self._delay, self._queue_size = batch_size, delay, queue_size
        self._free_threads = threads
        self._observe = observe
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="model")
        self._queues: dict[Hashable, _RequestQueue] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._seconds_per_row = 0.0
        # Number of rows that are not yet assigned to a batch.
        self.waiting_rows = 0

    async def run(self, model: Model, signature: str, inputs: Arrays) -> Arrays:
        """Runs a request, batched with other requests, and keeps the model loaded meanwhile.

        All inputs have the same number of rows. Raises RequestError if the queue is full, the
        request has more rows than the queue may hold, or the model rejects the rows.
        """
        rows = len(next(iter(inputs.values())))
        if rows > self._queue_size:
            raise RequestError(
                f"{rows} rows in one request, at most {self._queue_size} are allowed; "
                "split the request"
            )
        if self.waiting_rows + rows > self._queue_size:
            wait = min(max(math.ceil(self.waiting_rows * self._seconds_per_row), 1), 60)
            raise RequestError("too many requests are waiting", 429, {"Retry-After": str(wait)})
        loop = asyncio.get_running_loop()
        request = _PendingRequest(inputs, rows, loop.time(), loop.create_future())
        # Only the client knows how to pad, so rows of different shapes run in different batches.
        shapes = tuple((name, array.shape[1:]) for name, array in inputs.items())
        # A request without rows runs alone.
        key: Hashable = (id(model), signature, shapes) if rows else request
        model.hold()
        try:
            queue = self._queues.setdefault(key, _RequestQueue(model, signature))
            queue.requests.append(request)
            self.waiting_rows += rows
            self._start_due_batches()
            return await request.result
        finally:
            # If the client has disconnected, do not run the remaining rows of the request.
            self._remove(key, request)
            model.release()

    async def close(self) -> None:
        """Waits until all running batches are finished."""
        while self._running:
            await asyncio.wait(self._running)
        self._pool.shutdown(wait=False)

    def _remove(self, key: Hashable, request: _PendingRequest) -> None:
        queue = self._queues.get(key)
        if queue is None:
            return
        if request in queue.requests:
            queue.requests.remove(request)
            self.waiting_rows -= request.rows - request.taken
        if not queue.requests:
            del self._queues[key]

    def _start_due_batches(self) -> None:
        loop = asyncio.get_running_loop()
        while self._free_threads and self._queues:
            key, queue = min(self._queues.items(), key=lambda item: item[1].requests[0].arrived)
            due = queue.requests[0].arrived + self._delay
            if loop.time() < due and queue.rows < self._batch_size:
                # The oldest request can wait longer, so start any queue that fills a batch.
                full = [item for item in self._queues.items() if item[1].rows >= self._batch_size]
                if not full:
                    loop.call_at(due, self._start_due_batches)
                    return
                key, queue = full[0]
            self._start_batch(key, queue)

    def _start_batch(self, key: Hashable, queue: _RequestQueue) -> None:
        slices: list[_RequestSlice] = []
        room = self._batch_size
        while queue.requests and (room or not slices):
            request = queue.requests[0]
            stop = min(request.taken + room, request.rows)
            slices.append(_RequestSlice(request, request.taken, stop))
            room -= slices[-1].rows
            self.waiting_rows -= slices[-1].rows
            request.taken = stop
            if stop < request.rows:
                break
            queue.requests.popleft()
        if not queue.requests:
            del self._queues[key]
        self._free_threads -= 1
        task = asyncio.get_running_loop().create_task(self._run_batch(queue, slices))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run_batch(self, queue: _RequestQueue, slices: list[_RequestSlice]) -> None:
        queue.model.hold()
        left = slices
        try:
            try:
                await self._run_model(queue, slices)
            except RequestError as error:
                if len(slices) == 1 or error.code == TOO_SLOW:
                    raise
                while left:
                    try:
                        await self._run_model(queue, left[:1])
                    except RequestError as row_error:
                        if row_error.code == TOO_SLOW:
                            raise
                        _fail(left[0], row_error)
                    left = left[1:]
        except Exception as error:
            for rows in left:
                _fail(rows, error)
        finally:
            queue.model.release()
            self._free_threads += 1
            self._start_due_batches()

    async def _run_model(self, queue: _RequestQueue, slices: list[_RequestSlice]) -> None:
        parts = [rows.inputs for rows in slices]
        count = sum(rows.rows for rows in slices)
        # Round up to a power of two, because oneDNN caches a prepared operation per shape. With
        # many different batch sizes, the cache would take hundreds of megabytes.
        size = min(1 << (count - 1).bit_length() if count else 0, self._batch_size)
        # Pad with copies of the last row, because the model may reject arbitrary values.
        parts += [{name: array[-1:] for name, array in parts[-1].items()}] * (size - count)
        inputs = _concatenate(parts)
        loop = asyncio.get_running_loop()
        start = loop.time()
        outputs = await loop.run_in_executor(self._pool, queue.model.run, queue.signature, inputs)
        seconds = loop.time() - start
        self._observe(count, seconds)
        self._seconds_per_row += 0.2 * (seconds / max(count, 1) - self._seconds_per_row)
        if any(array.ndim == 0 or len(array) != size for array in outputs.values()):
            raise RequestError("the model does not return one row per row: it cannot be batched")
        first = 0
        for rows in slices:
            last = first + rows.rows
            _complete(rows, {name: array[first:last] for name, array in outputs.items()})
            first = last


def _complete(rows: _RequestSlice, outputs: Arrays) -> None:
    """Stores the outputs of a slice. The last slice completes the request."""
    request = rows.request
    request.outputs.append((rows.start, outputs))
    num_done = sum(len(next(iter(arrays.values()))) for _, arrays in request.outputs)
    if num_done == request.rows and not request.result.done():
        ordered = sorted(request.outputs, key=lambda item: item[0])
        request.result.set_result(_concatenate([arrays for _, arrays in ordered]))


def _fail(rows: _RequestSlice, error: Exception) -> None:
    # The request is already done if another slice failed or the client disconnected.
    if not rows.request.result.done():
        rows.request.result.set_exception(error)


def _concatenate(parts: list[Arrays]) -> Arrays:
    if len(parts) == 1:
        return parts[0]
    return {name: _concatenate_rows([part[name] for part in parts]) for name in parts[0]}


def _concatenate_rows(arrays: list[np.ndarray]) -> np.ndarray:
    """Concatenates arrays of rows, and pads shorter rows with zeros or empty strings."""
    shape = [max(sizes) for sizes in zip(*(array.shape[1:] for array in arrays), strict=True)]
    empty: Any = b"" if arrays[0].dtype == object else 0
    result = np.full((sum(map(len, arrays)), *shape), empty, arrays[0].dtype)
    start = 0
    for array in arrays:
        stop = start + len(array)
        result[start:stop][tuple(map(slice, array.shape))] = array
        start = stop
    return result
