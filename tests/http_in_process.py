"""Runs the server in the event loop of a test, with a model of numpy in place of TensorFlow."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from types import SimpleNamespace

import numpy as np

from keras_seq.serving.graph_file.signatures import Signature, TensorInfo
from keras_seq.serving.http.api import Api
from keras_seq.serving.http.batching import Batcher
from keras_seq.serving.http.bodies import Bodies
from keras_seq.serving.http.graceful import GracefulServer
from keras_seq.serving.http.hosts import allowed_hosts
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.metrics import Metrics

PATH = "/v1/models/ende:predict"


class Capitals:
    """A model that answers each text in capitals, and each row of `ids` with its sum."""

    version = 1
    sample_rate = None
    definitions: dict = {}
    signatures = {
        "serving_default": Signature({"text": TensorInfo("DT_STRING", (None,))}, {}),
        "ids": Signature({"ids": TensorInfo("DT_INT32", (None, None))}, {}),
    }

    def run(self, name, inputs):
        if name == "ids":
            return {"sum": inputs["ids"].sum(1)}
        return {"translation": np.array([text.upper() for text in inputs["text"]], object)}

    def check_languages(self, inputs):
        pass

    def hold(self):
        pass

    def release(self):
        pass


class InProcess:
    """A running server and what it printed."""

    def __init__(self, server: GracefulServer, port: int, bodies: Bodies) -> None:
        self.server, self.port, self.bodies = server, port, bodies
        self.printed: list[str] = []
        self.running: asyncio.Task
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        return reader, writer

    async def close(self) -> None:
        """Closes all connections, and stops the server."""
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        self.server.should_exit = True
        await self.running

    async def send(self, request: bytes) -> bytes:
        """Sends bytes on a new connection, and returns all bytes until the server closes it."""
        reader, writer = await self.connect()
        writer.write(request)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        try:
            return await read_all(reader)
        finally:
            writer.close()

    async def post(self, document, *headers: str, path=PATH) -> tuple[int, bytes]:
        """Posts JSON, or bytes, and returns the status and the whole response."""
        response = await self.send(post_request(document, *headers, "Connection: close", path=path))
        return int(response.split(b" ", 2)[1]), response


def post_request(document, *headers: str, path=PATH) -> bytes:
    """Returns a request to predict; `headers` replace the header Host if they have one."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    names = {line.partition(":")[0].lower() for line in headers}
    lines = [f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}", *headers]
    lines += [] if "host" in names else ["Host: localhost"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def read_all(reader: asyncio.StreamReader) -> bytes:
    """Returns what arrives until the server closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            received += data
    return received


@contextlib.asynccontextmanager
async def in_process(*names: str, **limits) -> AsyncIterator[InProcess]:
    """Serves on a free port; `limits` are fields of `Limits`, `names` are allowed hosts."""
    bounds = Limits(**limits)
    bodies = Bodies(bounds)
    batcher = Batcher(batch_size=32, delay=0, queue_size=256, threads=1)
    listener = socket.create_server(("127.0.0.1", 0))
    api = Api(
        name="ende",
        watcher=SimpleNamespace(current=Capitals(), states={}),
        batcher=batcher,
        metrics=Metrics(lambda: 1, lambda: batcher.waiting_rows, lambda: server.num_connections),
        bodies=bodies,
        limits=bounds,
        hosts=allowed_hosts("127.0.0.1", "127.0.0.1", names),
        ready=lambda: not server.should_exit,
    )
    listening = asyncio.Event()
    server = GracefulServer(
        api.app(),
        bounds,
        listening=listening.set,
        stopping=bodies.stop,
        notice=lambda line: served.printed.append(line),
    )
    served = InProcess(server, listener.getsockname()[1], bodies)
    served.running = asyncio.create_task(server.serve(sockets=[listener]))
    await asyncio.wait_for(listening.wait(), 10)
    try:
        yield served
    finally:
        await served.close()
        await batcher.close()
