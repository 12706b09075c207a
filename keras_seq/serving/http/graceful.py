"""Uvicorn server that reports when it accepts requests, and shuts down gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from keras_seq.serving.http.connections import (
    RareNotice,
    close_late_connections,
    limited_protocol,
    report_exhaustion,
)
from keras_seq.serving.http.limits import ACCEPTED_AT_ONCE, WAITING_TO_BE_ACCEPTED, Limits


class GracefulServer(uvicorn.Server):
    """Serves until SIGTERM or Ctrl-C, then spends at most `limits.stop_seconds` on open requests.

    A second Ctrl-C stops the server at once. `listening` is called when the server accepts
    requests, `stopping` when it stops accepting them. `notice` prints a line.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        *,
        listening: Callable[[], None],
        stopping: Callable[[], None],
        notice: Callable[[str], None],
    ) -> None:
        self._notice = RareNotice(notice)
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=limited_protocol(limits, self._notice),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=ACCEPTED_AT_ONCE,
                timeout_graceful_shutdown=limits.stop_seconds,
                timeout_keep_alive=limits.idle_seconds,
            )
        )
        self._limits = limits
        self._listening = listening
        self._stopping = stopping
        self.interrupted = False

    @property
    def num_connections(self) -> int:
        """Number of open connections."""
        return len(self.server_state.connections)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(functools.partial(report_exhaustion, notice=self._notice))
        watch = loop.create_task(
            close_late_connections(self.server_state.connections, self._limits)
        )
        try:
            await super().serve(sockets)
        finally:
            watch.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            # asyncio uses one number for this queue and for the connections accepted at once.
            listener.listen(WAITING_TO_BE_ACCEPTED)
        self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn's own method raises the signal again, so the signal would set the exit code.
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self._stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.interrupted |= number == signal.SIGINT
        self.handle_exit(number, frame)
