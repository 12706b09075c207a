"""Receives, parses and decodes the bodies of requests, within bounds on time and memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from starlette.requests import Request

from keras_seq.serving.http.errors import RequestError, stopping_error
from keras_seq.serving.http.limits import PARSED_AT_ONCE, Limits
from keras_seq.serving.http.sounds import Recordings

_Result = TypeVar("_Result")
# Some clients read no response until they have sent the whole body. So the server reads and
# discards a body that it refuses, up to this factor times the limit.
_DISCARD_FACTOR = 4


@dataclass
class _Body:
    """A body that is being received. The server holds `held` bytes of the `size` that came."""

    chunks: list[bytes] = field(default_factory=list)
    size: int = 0
    held: int = 0

    def take(self) -> bytes:
        """Returns the content, and keeps no copy."""
        content = b"".join(self.chunks)
        self.chunks.clear()
        return content


class Bodies:
    """The bodies of all requests that the server receives, parses and answers at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = 0
        self._receiving: set[asyncio.Timeout] = set()
        self._stopping = False
        # One thread, because parsed JSON takes much more memory than its text.
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="parser")
        # A separate thread, because decoding takes seconds. Only one, because it takes a core.
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="decoder")
        self._held_sounds = 0
        self._waiting_values = 0

    def stop(self) -> None:
        """Leaves a few seconds to the bodies that still arrive, because the server stops."""
        self._stopping = True
        latest = asyncio.get_running_loop().time() + self._limits.stop_client_seconds
        for timeout in self._receiving:
            when = timeout.when()
            if not timeout.expired() and when is not None and when > latest:
                timeout.reschedule(latest)

    @contextlib.asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[bytes]:
        """Yields the body of a request, which counts as held until the block ends.

        Raises RequestError if the body is too large or too slow, or if the server holds too many.
        """
        encoding = request.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise RequestError(f"Content-Encoding {encoding[:40]!r} is not understood", 415)
        # A client that sends Expect: 100-continue gets the error before it sends the body.
        declared = request.headers.get("content-length", "0")
        expects_continue = "100-continue" in request.headers.get("expect", "").lower()
        if expects_continue and declared.isdecimal() and int(declared) > self._limits.body_bytes:
            raise self._too_large()
        body = _Body()
        try:
            await self._receive_in_time(request, body)
            yield body.take()
        finally:
            self._release(body)

    async def parse(
        self, size: int, function: Callable[..., _Result], *arguments: object
    ) -> _Result:
        """Calls a function that parses a body of `size` bytes, and returns its result.

        Large bodies are parsed in a thread, so that other requests are answered meanwhile.
        """
        if size <= PARSED_AT_ONCE:
            return function(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._parser, function, *arguments)

    @contextlib.asynccontextmanager
    async def decode(self, recordings: Recordings) -> AsyncIterator[dict[str, np.ndarray]]:
        """Yields the samples of recordings, which count as held until the block ends.

        Raises RequestError if the server holds too many, or if a recording is damaged.
        """
        size, values = recordings.num_bytes, recordings.num_values
        limits = self._limits
        if (
            self._held_sounds + size > limits.sound_bytes
            or self._waiting_values + values > limits.total_sound_values
        ):
            raise RequestError("too many requests with recordings", 503, {"Retry-After": "1"})
        self._held_sounds += size
        self._waiting_values += values
        try:
            loop = asyncio.get_running_loop()
            try:
                samples = await loop.run_in_executor(self._decoder, recordings.decode)
            finally:
                self._waiting_values -= values
            yield samples
        finally:
            self._held_sounds -= size

    async def _receive_in_time(self, request: Request, body: _Body) -> None:
        limits = self._limits
        timeout = asyncio.timeout(
            limits.stop_client_seconds if self._stopping else limits.body_seconds
        )
        try:
            async with timeout:
                self._receiving.add(timeout)
                await self._receive(request, body)
        except TimeoutError:
            if self._stopping:
                raise stopping_error() from None
            raise RequestError(
                "the body did not arrive in time", 408, {"Connection": "close"}
            ) from None
        finally:
            self._receiving.discard(timeout)

    async def _receive(self, request: Request, body: _Body) -> None:
        error: RequestError | None = None
        async for chunk in request.stream():
            body.size += len(chunk)
            error = self._refusal(body.size, len(chunk)) if error is None else error
            if error is None:
                body.chunks.append(chunk)
                body.held += len(chunk)
                self._held += len(chunk)
            elif body.size > _DISCARD_FACTOR * self._limits.body_bytes:
                raise self._too_large({"Connection": "close"})
            else:
                self._release(body)
        if body.size > self._limits.body_bytes:
            raise self._too_large()
        if error is not None:
            raise error

    def _refusal(self, size: int, num_new: int) -> RequestError | None:
        limits = self._limits
        total = limits.total_body_bytes
        available = total if size <= limits.small_body_bytes else total - total // 4
        if size > limits.body_bytes:
            return self._too_large()
        if self._held + num_new > available:
            return RequestError("too many requests with large bodies", 503, {"Retry-After": "1"})
        return None

    def _release(self, body: _Body) -> None:
        self._held -= body.held
        body.held = 0
        body.chunks.clear()

    def _too_large(self, headers: dict[str, str] | None = None) -> RequestError:
        return RequestError(
            f"the body is larger than {self._limits.body_bytes:,} bytes", 413, headers
        )
