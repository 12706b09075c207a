"""Uvicorn server that reports when it accepts requests, and shuts down gracefully."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp


class GracefulServer(uvicorn.Server):
    """Serves until SIGTERM or Ctrl-C, then spends at most `stop_seconds` on pending requests.

    A second Ctrl-C stops the server at once. `listening` is called when the server accepts
    requests.
    """

    def __init__(self, app: ASGIApp, stop_seconds: int, listening: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=stop_seconds,
                # Keep idle connections, for clients that send one request per minute.
                timeout_keep_alive=75,
            )
        )
        self._listening = listening
        self.interrupted = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening()

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
