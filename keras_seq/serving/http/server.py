"""Start and stop: a port, a model, requests, and an end in good order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_seq.runtime.signals import raise_in_our_code
from keras_seq.runtime.threads import usable_cores
from keras_seq.serving.http.versions import newest_version
from keras_seq.storage import reason
from keras_seq.text import InputError

if TYPE_CHECKING:
    from keras_seq.serving.http.watcher import ModelWatcher

_POLL_SECONDS = 1.0
# Each batch that runs has its own memory.
_MOST_THREADS = 16
# What a request may hold: a megabyte of text with every character escaped, with room.
MAX_BODY = 8 * 2**20


@dataclass(frozen=True)
class Options:
    """How to serve.

    Attributes:
        base: Directory of the versions.
        host: Address to listen on.
        port: Port; 0 for one that is free.
        model_name: The model's name in the path; that of `base` if None.
        max_batch: Most sentences that run together.
        batch_delay_ms: Milliseconds that a sentence may wait for others.
        queue_size: Most sentences that may wait.
        threads: Batches that run at the same time; one for each core if None.
        trust: Whether versions are served whatever their graphs contain.
        stop_seconds: Most seconds from the signal to stop to the end.
    """

    base: Path
    host: str = "127.0.0.1"
    port: int = 8501
    model_name: str | None = None
    max_batch: int = 32
    batch_delay_ms: float = 5.0
    queue_size: int = 256
    threads: int | None = None
    trust: bool = False
    stop_seconds: int = 30


class Server:
    """A server for the newest version of a directory.

    What is wrong with the directory, the name, the port or the installation
    is said when it is made, before TensorFlow is imported.

    Args:
        options: How to serve.
        notice: Called with a line for each thing to know.

    Raises:
        InputError: Something of the above.
    """

    def __init__(self, options: Options, notice: Callable[[str], None]) -> None:
        self._options = options
        self._notice = notice
        _check_extra()
        self._version, self._path = newest_version(options.base)
        self.name = _model_name(options)
        self._socket = _listener(options.host, options.port)

    @property
    def url(self) -> str:
        """Where the server listens."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def import_tensorflow(self) -> None:
        """Imports TensorFlow and lets it look for devices, which it does with many words."""
        import tensorflow as tf

        # No more than look: the first session decides how many threads there are.
        tf.config.list_physical_devices()

    def run(self) -> int:
        """Loads the model and serves until told to stop.

        Stops on SIGTERM and on Ctrl-C: takes no new request, answers those
        that it has, and ends.

        Returns:
            The exit code: 0, or 130 after Ctrl-C.

        Raises:
            InputError: The version cannot be served.
        """
        # Until requests come in there is nothing to finish.
        with contextlib.closing(self._socket), _exit_on_terminate():
            from keras_seq.serving.http.watcher import ModelWatcher

            threads = self._options.threads or min(usable_cores(), _MOST_THREADS)
            options = self._options
            watcher = ModelWatcher(options.base, self._notice, threads, trust=options.trust)
            watcher.start(self._version, self._path)
            try:
                return asyncio.run(self._serve(watcher, threads))
            except OSError as error:
                raise InputError(f"{self.url} cannot be used: {reason(error)}") from None
            finally:
                watcher.close()

    async def _serve(self, watcher: ModelWatcher, threads: int) -> int:
        from keras_seq.serving.http.api import Api
        from keras_seq.serving.http.batching import Batcher
        from keras_seq.serving.http.graceful import GracefulServer
        from keras_seq.serving.http.metrics import Metrics

        options = self._options
        batcher = Batcher(
            max_batch=options.max_batch,
            delay=options.batch_delay_ms / 1000,
            queue_size=options.queue_size,
            threads=threads,
            observe=lambda rows, seconds: metrics.batch(rows, seconds),
        )
        metrics = Metrics(lambda: watcher.current.version, lambda: batcher.waiting_rows)
        api = Api(
            name=self.name,
            watcher=watcher,
            batcher=batcher,
            metrics=metrics,
            max_body=MAX_BODY,
            ready=lambda: not server.should_exit,
        )
        server = GracefulServer(
            api.app(),
            options.stop_seconds,
            lambda: self._notice(
                f"serving {self.name}, version {self._version}, at {self.url} (Ctrl-C stops)"
            ),
        )
        async with _background(watcher.watch(_POLL_SECONDS)):
            await server.serve(sockets=[self._socket])
        await batcher.close()
        return 130 if server.interrupted else 0


def _check_extra() -> None:
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"serving needs {error.name or 'more packages'}: pip install 'keras-seq[serve]'"
        ) from None


def _model_name(options: Options) -> str:
    name = options.model_name
    if name is None:
        name = options.base.resolve().name
    if not re.fullmatch(r"[^/:\s]+", name):
        raise InputError(
            f"{name!r}: not a name for a model: it stands in the path of a URL, so it has no "
            "slash, colon or space; choose one with --model-name"
        )
    return name


def _listener(host: str, port: int) -> socket.socket:
    """A socket that is bound; nobody is let in before the model is loaded."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{host}: not an address to listen on: {_words(error)}") from None
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise InputError(
            f"port {port} of {host} cannot be used: {_words(error)}; choose another with --port"
        ) from None
    return listener


def _words(error: Exception) -> str:
    return reason(error) if isinstance(error, OSError) else str(error)


@contextlib.contextmanager
def _exit_on_terminate() -> Iterator[None]:
    before = signal.signal(
        signal.SIGTERM, lambda number, frame: raise_in_our_code(frame, lambda: sys.exit(0))
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.asynccontextmanager
async def _background(work: Any) -> AsyncIterator[None]:
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
