"""The server process: port, model, event loop, and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_seq.operating_system import raise_open_file_limit, reuse_address, usable_cores
from keras_seq.process.signals import raise_outside_libraries
from keras_seq.serving.http.hosts import allowed_hosts
from keras_seq.serving.http.limits import MAX_OPEN_FILES, Limits, connection_limit
from keras_seq.serving.http.versions import newest_version
from keras_seq.storage import reason
from keras_seq.text import InputError

if TYPE_CHECKING:
    from keras_seq.serving.http.watcher import ModelWatcher

_POLL_SECONDS = 1.0
# Default limit of parallel batches, because each batch takes memory.
_MAX_THREADS = 16


@dataclass(frozen=True)
class Options:
    """Options of `keras-seq serve`. `base` is the directory that contains the versions.

    `max_connections` replaces `limits.connections`. If it is None, the number follows from the
    system's limit on open files.
    """

    base: Path
    host: str = "127.0.0.1"
    port: int = 8501
    model_name: str | None = None
    batch_size: int = 32
    batch_delay_ms: float = 5.0
    queue_size: int = 256
    threads: int | None = None
    trust: bool = False
    allowed_hosts: tuple[str, ...] = ()
    max_connections: int | None = None
    limits: Limits = field(default_factory=Limits)


class Server:
    """HTTP server for the newest version in a directory.

    The constructor checks the directory, the model name, the port and the installation before
    TensorFlow is imported.
    """

    def __init__(self, options: Options, notice: Callable[[str], None]) -> None:
        self._options = options
        self._notice = notice
        _check_extra()
        self._version, self._path = newest_version(options.base)
        self.name = _model_name(options)
        open_files = raise_open_file_limit(MAX_OPEN_FILES)
        connections = connection_limit(open_files, options.max_connections)
        self._limits = replace(options.limits, connections=connections)
        self._socket = _listener(options.host, options.port)
        try:
            self._hosts = allowed_hosts(
                options.host, self._socket.getsockname()[0], options.allowed_hosts
            )
        except InputError:
            self._socket.close()
            raise

    @property
    def url(self) -> str:
        """The URL of the server."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def import_tensorflow(self) -> None:
        """Imports TensorFlow and lists the devices. The caller can silence the log lines."""
        # This and the model take seconds, in which the port refuses connections.
        self._notice(f"loading {self.name}, version {self._version}")
        import tensorflow as tf

        # List the devices without using them, because the first use fixes the number of threads.
        tf.config.list_physical_devices()

    def run(self) -> int:
        """Loads the model, serves until SIGTERM or Ctrl-C, and then answers pending requests.

        Returns the exit code: 0, or 130 after Ctrl-C.
        """
        # Until the server accepts requests, SIGTERM exits immediately.
        with contextlib.closing(self._socket), _exit_on_terminate():
            from keras_seq.serving.http.watcher import ModelWatcher

            threads = self._options.threads or min(usable_cores(), _MAX_THREADS)
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
        from keras_seq.serving.http.bodies import Bodies
        from keras_seq.serving.http.graceful import GracefulServer
        from keras_seq.serving.http.metrics import Metrics

        options = self._options
        batcher = Batcher(
            batch_size=options.batch_size,
            delay=options.batch_delay_ms / 1000,
            queue_size=options.queue_size,
            threads=threads,
            observe=lambda rows, seconds: metrics.batch(rows, seconds),
        )
        metrics = Metrics(
            lambda: watcher.current.version,
            lambda: batcher.waiting_rows,
            lambda: server.num_connections,
        )
        bodies = Bodies(self._limits)
        api = Api(
            name=self.name,
            watcher=watcher,
            batcher=batcher,
            metrics=metrics,
            bodies=bodies,
            limits=self._limits,
            hosts=self._hosts,
            ready=lambda: not server.should_exit,
        )
        server = GracefulServer(
            api.app(),
            self._limits,
            listening=lambda: self._notice(
                f"serving {self.name}, version {self._version}, at {self.url} (Ctrl-C stops)"
            ),
            stopping=bodies.stop,
            notice=self._notice,
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
            f"serving needs {error.name or 'more packages'}: "
            "python -m pip install 'keras-seq[serve]'"
        ) from None


def _model_name(options: Options) -> str:
    name = options.base.resolve().name if options.model_name is None else options.model_name
    if not re.fullmatch(r"[^/:\s]+", name):
        raise InputError(
            f"{name!r}: not a name for a model: it is part of a URL, so it must not be empty or "
            "contain a slash, colon or space; choose another with --model-name"
        )
    return name


def _listener(host: str, port: int) -> socket.socket:
    """Returns a bound socket. The server listens on the socket after loading the model."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        message = reason(error) if isinstance(error, OSError) else str(error)
        raise InputError(f"{host}: not an address to listen on: {message}") from None
    try:
        reuse_address(listener)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise InputError(
            f"port {port} of {host} cannot be used: {reason(error)}; choose another with --port"
        ) from None
    return listener


@contextlib.contextmanager
def _exit_on_terminate() -> Iterator[None]:
    previous = signal.signal(
        signal.SIGTERM,
        lambda number, frame: raise_outside_libraries(frame, lambda: sys.exit(0), exit_code=0),
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.asynccontextmanager
async def _background(work: Any) -> AsyncIterator[None]:
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
