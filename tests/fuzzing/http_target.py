"""The target of the fuzzers that sends requests to the HTTP application of `keras-seq serve`.

The content of a file is a request as JSON. The application runs in the process of the fuzzer,
without sockets, with a model of numpy that also takes samples and recordings.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import wave
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import hypothesis.strategies as st
import numpy as np
from fuzzing.mutations import damaged_bytes, damaged_json, json_values
from http_in_process import PATH, Capitals

from keras_seq.serving.graph_file.signatures import Signature, TensorInfo
from keras_seq.serving.http.api import Api
from keras_seq.serving.http.batching import Batcher
from keras_seq.serving.http.bodies import Bodies
from keras_seq.serving.http.hosts import allowed_hosts
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.metrics import Metrics

# Bodies above the first limit, and bodies that are parsed in a thread, are drawn too.
LIMITS = Limits(body_bytes=30_000, total_body_bytes=60_000, values=2_000, lists=500)
RATE = 8000
SECONDS = 10.0
METHODS = ["POST", "POST", "POST", "GET", "HEAD", "PUT", "OPTIONS", "DELETE", "\x00", "get"]
PATHS = [
    *(PATH, PATH, PATH, PATH, "/", "/health", "/ready", "/metrics", "/v1/models/ende", "//", "*"),
    *("/v1/models/ende/metadata", "/v1/models/ende/versions/1:predict", "/v1/", "/v1", ""),
    *("/v1/models/ende/versions/9:predict", "/v1/models/ende/versions/1", "/v1/models/%ff:predict"),
    *("/v1/models/ende/versions/" + "9" * 30, "/v1/models/ende/versions/%D9%A1:predict"),
    *("/v1/models/ende:classify", "/v1/models/ende/labels/new:predict", "/v1/models/../ende"),
    *("/%00", "/v1/models/ende%0a:predict", "http://evil/", "/v1/" + "a" * 5000),
]
HEADERS = [
    *("host: localhost", "host: evil", "host: [::1", "host:", "origin: null", "origin: http://x"),
    *("sec-fetch-site: cross-site", "content-type: text/plain", "content-type: application/json"),
    *("content-type: ;", "content-encoding: gzip", "content-encoding: \xff", "range: bytes=0-1"),
    *("expect: 100-continue", "content-length: 99999999", "content-length: \xb2", "x: \xff"),
    # h11 refuses longer ones.
    *("content-length: " + "9" * 20, "accept: text/html", "transfer-encoding: chunked"),
]


class Model(Capitals):
    """Capitals of texts, sums of ids, and means of samples; refuses no recording that is sound."""

    sample_rate = RATE
    signatures = Capitals.signatures | {
        "samples": Signature(
            {
                "samples": TensorInfo("DT_FLOAT", (None, None)),
                "lengths": TensorInfo("DT_INT32", (None,)),
            },
            {},
        ),
        "one": Signature({"flag": TensorInfo("DT_BOOL", (None, 2))}, {}),
    }

    def run(self, name: str, inputs: Any) -> Any:
        if name == "samples":
            return {"mean": inputs["samples"].sum(1) / np.maximum(inputs["lengths"], 1)}
        return {"flag": inputs["flag"]} if name == "one" else super().run(name, inputs)


def _sound() -> str:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes(bytes(range(200)))
    return base64.b64encode(file.getvalue()).decode()


SOUND = _sound()
# The bodies of valid requests.
VALID: list[dict[str, Any]] = [
    {"instances": ["a", "b"]},
    {"instances": [{"text": "a"}, {"text": {"b64": "YQ=="}}]},
    {"inputs": ["a"], "signature_name": "serving_default"},
    {"inputs": {"text": [{"b64": "YQ=="}, "é漢😀"]}},
    {"instances": [{"ids": [1, 2]}, {"ids": [3, 4]}], "signature_name": "ids"},
    {"inputs": {"ids": [[1, 2], [3, 4]]}, "signature_name": "ids"},
    {"inputs": {"samples": [[0.5, 1]], "lengths": [2]}, "signature_name": "samples"},
    {"instances": [{"audio": {"b64": SOUND}}], "signature_name": "samples"},
    {"inputs": {"audio": [{"b64": SOUND}] * 2}, "signature_name": "samples"},
    {"instances": [[True, False]], "signature_name": "one"},
]


def requests() -> st.SearchStrategy[bytes]:
    """Returns requests as JSON. Half of them differ from valid ones in their bodies only."""
    bodies = (_bodies(), st.integers(1, 4), st.sampled_from([False, False, False, True]))
    paths = st.one_of(st.sampled_from(PATHS), st.sampled_from(PATHS).flatmap(_changed))
    headers = st.lists(st.sampled_from(HEADERS), max_size=3)
    return st.one_of(
        st.builds(request_of, st.just("POST"), st.just(PATH), st.just([]), *bodies),
        st.builds(request_of, st.sampled_from(METHODS), paths, headers, *bodies),
    )


def request_of(
    method: str,
    path: str,
    headers: list[str],
    body: bytes,
    chunks: int = 1,
    is_cut: bool = False,
) -> bytes:
    """Returns a request as JSON. If it `is_cut`, the client goes before its last chunk."""
    values = {
        "method": method,
        "path": path,
        "headers": headers,
        # Latin-1 has a character for each byte.
        "body": body.decode("latin-1"),
        "chunks": chunks,
        "is_cut": is_cut,
    }
    return json.dumps(values).encode()


def _changed(path: str) -> st.SearchStrategy[str]:
    return damaged_bytes(path.encode()).map(lambda changed: changed.decode("ascii", "replace"))


def _bodies() -> st.SearchStrategy[bytes]:
    valid = st.sampled_from(VALID)
    changed = valid.flatmap(damaged_json)
    long = st.sampled_from([300, 3_000, 9_000]).map(lambda count: {"instances": ["é"] * count})
    return st.one_of(
        valid.map(_dumped),
        changed.map(_dumped),
        changed.map(_dumped),
        valid.map(_dumped).flatmap(damaged_bytes),
        _sounds(),
        json_values.map(_dumped),
        long.map(_dumped),
        st.binary(max_size=50),
    )


def _sounds() -> st.SearchStrategy[bytes]:
    """Returns requests with damaged recordings."""
    return damaged_bytes(base64.b64decode(SOUND)).map(
        lambda content: _dumped(
            {
                "instances": [{"audio": {"b64": base64.b64encode(content).decode()}}],
                "signature_name": "samples",
            }
        )
    )


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def check_request(content: bytes) -> None:
    """Sends a request. Raises AssertionError for an internal error, or an answer of no kind."""
    request = json.loads(content)
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        sent = asyncio.run(asyncio.wait_for(answer(request), SECONDS))
    # The application prints internal errors, and answers them with 500.
    assert printed.getvalue() == ""
    assert sent, "no answer"
    start, *parts = sent
    assert 200 <= start["status"] < 600 and start["status"] != 500, start
    body = b"".join(part.get("body", b"") for part in parts)
    headers = {name.lower(): value for name, value in start["headers"]}
    kind = headers.get(b"content-type", b"")
    if kind.startswith(b"application/json"):
        assert request["method"] == "HEAD" or json.loads(body) is not None
    else:
        own = {b"text/html": "/", b"text/plain": "/metrics"}
        path = _scope(request)["path"]
        assert not body or own.get(kind.partition(b";")[0]) == path, (path, kind)


async def answer(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the messages with which the application answers."""
    batcher = Batcher(batch_size=32, delay=0, queue_size=256, threads=1)
    app = Api(
        name="ende",
        watcher=SimpleNamespace(current=Model(), states={1: SimpleNamespace(state="X", error="")}),
        batcher=batcher,
        metrics=Metrics(lambda: 1, lambda: 0, lambda: 1),
        bodies=Bodies(LIMITS),
        limits=LIMITS,
        hosts=allowed_hosts("127.0.0.1", "127.0.0.1", ()),
        ready=lambda: True,
    ).app()
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    try:
        await app(_scope(request), _receiver(request), send)
    finally:
        await batcher.close()
    if request["is_cut"] and not sent:
        # Nobody reads an answer.
        sent.append({"status": 499, "headers": []})
    return sent


def _scope(request: dict[str, Any]) -> dict[str, Any]:
    path, _, query = request["path"].partition("?")
    headers = [line.partition(":") for line in request["headers"]]
    if not any(name == "host" for name, _, _ in headers):
        headers.append(("host", ":", "localhost"))
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request["method"],
        "scheme": "http",
        # As uvicorn decodes it.
        "path": unquote(path),
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode("utf-8", "replace"),
        "root_path": "",
        "headers": [(name.encode(), value.strip().encode("latin-1")) for name, _, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8501),
    }


def _receiver(request: dict[str, Any]) -> Callable[[], Any]:
    """Returns the function that yields the parts of a body, and then waits or disconnects."""
    body, count = request["body"].encode("latin-1"), request["chunks"]
    size = -(-len(body) // count) or 1
    parts = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    if request["is_cut"]:
        parts = parts[:-1]
    messages = [
        {
            "type": "http.request",
            "body": part,
            "more_body": number + 1 < len(parts) or request["is_cut"],
        }
        for number, part in enumerate(parts)
    ]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop(0)
        if not request["is_cut"]:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return receive
