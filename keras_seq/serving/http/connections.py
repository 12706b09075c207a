"""Limits the number of connections and the time that they may wait.

Uvicorn has a time limit for idle connections after a response, but none before the first request,
none for headers, and none for clients that do not read their response.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Collection
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_seq.serving.http.limits import Limits

_NOTICE_SECONDS = 60.0
# Errors of `accept` if the process or the system has no descriptor or no memory left.
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def _response(status: str, message: str, *headers: str) -> bytes:
    body = f'{{"error":"{message}"}}'
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *headers,
    )
    return "\r\n".join((*lines, "", body)).encode()


_TOO_MANY = _response("503 Service Unavailable", "too many connections", "Retry-After: 1")
_INVALID = _response("400 Bad Request", "Invalid HTTP request received.")


class RareNotice:
    """Prints each message at most once per minute, so that clients cannot fill the log."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice = notice
        self._printed: dict[str, float] = {}

    def __call__(self, message: str) -> None:
        now = time.monotonic()
        if now - self._printed.get(message, -_NOTICE_SECONDS) >= _NOTICE_SECONDS:
            self._printed[message] = now
            self._notice(message)


class LimitedProtocol(H11Protocol):
    """HTTP connection that is closed if its client is too slow.

    Beyond the limit, the connection that has waited longest for its first request is closed, so
    that silent clients do not keep others out. If there is none, the new one is refused.

    Uses only attributes and methods of `H11Protocol` without a leading underscore.
    `limited_protocol` makes a class with the limits.
    """

    limits: ClassVar[Limits]
    notice: ClassVar[RareNotice]
    # Connections without a complete first request, the oldest first.
    silent: ClassVar[dict[LimitedProtocol, None]]
    # What the connection waits for, and since when.
    _waits_for: tuple[float | None, object] = (None, None)
    _since = 0.0
    _stopping = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._waits_for = (self.limits.header_seconds, None)
        if len(self.connections) > self.limits.connections:
            type(self).notice(
                f"more than {self.limits.connections:,} connections: those without a request are "
                "closed, and further ones are refused"
            )
            next(iter(self.silent), self)._refuse()
        if not transport.is_closing():
            self.silent[self] = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None:
            self.silent.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.silent.pop(self, None)
        super().connection_lost(exc)

    def _refuse(self) -> None:
        self.silent.pop(self, None)
        self.transport.write(_TOO_MANY)
        self.transport.close()

    def shutdown(self) -> None:
        self._stopping = True
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        # Uvicorn's method raises an exception if the body of an answered request is invalid.
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_INVALID)
        self.transport.close()

    def close_if_late(self) -> None:
        """Closes the connection if it has waited for its client for too long."""
        now = self.loop.time()
        waits_for = (self._allowed_seconds(), self.cycle)
        if waits_for != self._waits_for:
            self._waits_for, self._since = waits_for, now
        elif waits_for[0] is not None and now - self._since >= waits_for[0]:
            # `close` would wait until the client has read the rest of a response.
            self.transport.abort()

    def _allowed_seconds(self) -> float | None:
        """Returns how long the client may take for its next step, or None without a limit here."""
        if self.transport.get_write_buffer_size():
            limits = self.limits
            return limits.stop_client_seconds if self._stopping else limits.write_seconds
        if self.cycle is not None and not self.cycle.response_complete:
            # The application receives the body, with its own limit, or computes the response.
            return None
        # Uvicorn cancels this timer as soon as data arrives. Without it, a request has begun, or
        # the body of an answered request still arrives.
        return None if self.timeout_keep_alive_task is not None else self.limits.header_seconds


def limited_protocol(limits: Limits, notice: RareNotice) -> type[LimitedProtocol]:
    """Returns a class of connections with `limits`, because uvicorn makes the connections."""
    attributes = {"limits": limits, "notice": notice, "silent": {}}
    return type("LimitedProtocol", (LimitedProtocol,), attributes)


async def close_late_connections(connections: Collection[Any], limits: Limits) -> None:
    """Calls `close_if_late` of all connections about once per second, until it is canceled."""
    while True:
        await asyncio.sleep(min(1.0, limits.header_seconds / 4))
        for connection in list(connections):
            connection.close_if_late()


def report_exhaustion(
    loop: asyncio.AbstractEventLoop, context: dict[str, Any], notice: RareNotice
) -> None:
    """Exception handler of an event loop: one line if no connection can be accepted.

    asyncio's own handler prints a traceback for each failed attempt, thousands per second.
    """
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        notice(f"a connection could not be accepted: {error.strerror}")
    else:
        loop.default_exception_handler(context)
